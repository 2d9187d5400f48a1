"""Figures with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._frames import finite

if TYPE_CHECKING:
    from ._document import Comparison, Results

MIB = 2**20

#: Axes with their labels and the factor of their unit.
_AXES = {
    "bytes_per_s": ("MiB/s", MIB),
    "request_bytes": ("request (KiB)", 1024),
    "depth": ("requests outstanding", 1),
    "threads": ("threads", 1),
    "iops": ("requests/s", 1),
}


def _axis(name: str) -> tuple[str, float]:
    label, unit = _AXES.get(name, (name.replace("_", " "), 1))
    return label, float(unit)


def _axes(count: int, ax: Any) -> tuple[Any, list[Any]]:
    if ax is not None:
        if count != 1:
            raise ValueError(f"ax: there are {count} figures; name one with figure=")
        return ax.figure, [ax]
    import matplotlib.pyplot as pyplot

    columns = min(count, 2)
    rows = -(-count // columns)
    made, grid = pyplot.subplots(rows, columns, figsize=(6 * columns, 3.6 * rows), squeeze=False)
    flat = list(grid.flat)
    for unused in flat[count:]:
        unused.remove()
    return made, flat[:count]


def plot_results(results: Results, figure: str | None, ax: Any) -> Any:
    figures = [one for _, one in results._figures() if figure is None or one["id"] == figure]
    if not figures:
        if figure is not None:
            known = ", ".join(str(one["id"]) for _, one in results._figures()) or "none"
            raise KeyError(f"figure {figure!r}: the document has {known}")
        return _plot_points(results, ax)
    made, all_axes = _axes(len(figures), ax)
    for one, axes in zip(figures, all_axes, strict=True):
        (x_label, x_unit), (y_label, y_unit) = _axis(one["x"]), _axis(one["y"])
        for series in one["series"]:
            values = series["values"]
            x = [finite(value["x"]) / x_unit for value in values]
            y = [finite(value.get("y")) / y_unit for value in values]
            (line,) = axes.plot(x, y, marker="o", markersize=3, label=series["name"])
            ends = [value.get("interval_95") or (value.get("y"), value.get("y")) for value in values]
            low, high = ([finite(end[side]) / y_unit for end in ends] for side in (0, 1))
            axes.fill_between(x, low, high, alpha=0.2, color=line.get_color())
        if one["x"] in ("request_bytes", "depth", "threads"):
            axes.set_xscale("log", base=2)
        axes.set(title=one["title"], xlabel=x_label, ylabel=y_label)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize="small")
    made.tight_layout()
    return made


def _plot_points(results: Results, ax: Any) -> Any:
    made, (axes,) = _axes(1, ax)
    labels, rates, low, high = [], [], [], []
    for index, point in enumerate(results.data["points"]):
        asked = point["workload"]
        label = f"{asked['op']} {asked['pattern']} {asked['request_bytes']} x{asked['depth']}"
        labels.append(f"{index}: {label}")
        rate = finite(point.get("throughput_bytes_per_s")) / MIB
        ends = point.get("interval_95") or (None, None)
        rates.append(rate)
        low.append(rate - finite(ends[0]) / MIB if ends[0] is not None else 0.0)
        high.append(finite(ends[1]) / MIB - rate if ends[1] is not None else 0.0)
    axes.barh(labels, rates, xerr=[low, high])
    axes.invert_yaxis()
    axes.set(title=results.target, xlabel="MiB/s")
    made.tight_layout()
    return made


def plot_comparison(comparison: Comparison, ax: Any) -> Any:
    made, (axes,) = _axes(1, ax)
    differences = comparison.data["differences"]
    ratios = [finite(one["b"]) / finite(one["a"]) if one["a"] else finite(None) for one in differences]
    labels = [f"{one['label']}: {one['measure']}" for one in differences]
    axes.plot(ratios, labels, "o")
    for index, one in enumerate(differences):
        ends = one.get("interval_95_percent")
        if ends:
            axes.plot([1 + finite(end) / 100 for end in ends], [index, index], color="C0")
    axes.axvline(1, color="grey", linewidth=0.8)
    a, b = comparison.sides
    axes.set(title=f"{b} over {a}", xlabel="ratio")
    axes.invert_yaxis()
    made.tight_layout()
    return made
