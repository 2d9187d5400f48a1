"""The documents that halfpower writes: results, comparisons, tunings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from ._frames import Kind, Row, frame

#: The results that a directory holds, as `halfpower report DIR` finds them.
_INSIDE = ("results.json", "halfpower-out/results.json")


class DocumentError(ValueError):
    """A file that is not a document of halfpower, or one of a newer version."""


@dataclass(frozen=True)
class Peak:
    """The best rate of an operation in a study."""

    op: str
    throughput_bytes_per_s: float
    interval_95: tuple[float, float] | None
    #: Options of `halfpower run` that repeat it.
    settings: str
    #: Index of its point.
    point: int


@dataclass(frozen=True)
class Document:
    """What every document has."""

    #: The document as it was read.
    data: Mapping[str, Any]

    @property
    def schema(self) -> str:
        """Name and version of the schema."""
        return str(self.data["schema"])

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the whole document."""
        return [str(one) for one in self.data.get("warnings", [])]

    @property
    def arguments(self) -> list[str]:
        """The arguments of the program that wrote it."""
        return [str(one) for one in self.data["program"]["arguments"]]

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the document as JSON to a new file."""
        with open(path, "x", encoding="utf-8") as file:
            json.dump(self.data, file, indent=2)


def _point_row(index: int, point: Mapping[str, Any]) -> Row:
    workload = dict(point["workload"])
    stop = workload.pop("stop", {}) or {}
    data = workload.pop("data", {}) or {}
    sizes = workload.pop("sizes", None)
    row: Row = {"point": index, **workload}
    row["sizes"] = None if sizes is None else json.dumps(sizes)
    row["stop_after_ns"] = stop.get("after_ns")
    row["stop_after_bytes"] = stop.get("after_bytes")
    row.update(data)
    low, high = point.get("interval_95") or (None, None)
    row.update(
        throughput_bytes_per_s=point.get("throughput_bytes_per_s"),
        throughput_bytes_per_s_low_95=low,
        throughput_bytes_per_s_high_95=high,
        iops=point.get("iops"),
        repeats=point.get("repeats"),
    )
    for name, value in (point.get("latency_ns") or {}).items():
        row["latency_count" if name == "count" else f"latency_{name}_ns"] = value
    for name in ("user", "system", "machine"):
        row[f"cpu_{name}_ns_per_request"] = (point.get("cpu_ns_per_request") or {}).get(name)
    for name, value in (point.get("achieved") or {}).items():
        if value is None or isinstance(value, bool | int | float | str):
            row.setdefault(name, value)
    row["warnings"] = "; ".join(point.get("warnings", []))
    row["error"] = point.get("error")
    return row


@dataclass(frozen=True)
class Results(Document):
    """The results of a study, a sweep, a run, or another tool's dialect."""

    @property
    def kind(self) -> str:
        """`study`, `sweep`, `run`, `stack`, `postmark` or `metadata`."""
        return str(self.data["kind"])

    @property
    def target(self) -> str:
        """Name of the target."""
        return str(self.data["target"]["name"])

    @property
    def incomplete(self) -> bool:
        """Whether Ctrl-C ended the measurement."""
        return bool(self.data.get("incomplete", False))

    @property
    def peaks(self) -> list[Peak]:
        """The best rates of a study; empty for other documents."""
        answer = self.data.get("answer") or {}
        return [
            Peak(
                op=one["op"],
                throughput_bytes_per_s=float(one["throughput_bytes_per_s"]),
                interval_95=tuple(one["interval_95"]) if one.get("interval_95") else None,
                settings=one["settings"],
                point=one["point"],
            )
            for one in answer.get("peaks", [])
        ]

    def peak(self, op: str) -> Peak:
        """The best rate of `read` or `write`.

        Raises:
            KeyError: the document has none.
        """
        for one in self.peaks:
            if one.op == op:
                return one
        raise KeyError(f"no peak of {op!r}: {self.kind} of {self.target}")

    def points(self, kind: Kind = "pandas") -> Any:
        """A frame with a row for every point, measured or failed."""
        return frame([_point_row(*one) for one in enumerate(self.data["points"])], kind)

    def runs(self, kind: Kind = "pandas") -> Any:
        """A frame with a row for every run of every point."""
        rows: list[Row] = []
        for index, point in enumerate(self.data["points"]):
            runs = point.get("runs", [])
            for number, rate in enumerate(point.get("runs_bytes_per_s", [])):
                row: Row = {"point": index, "run": number, "throughput_bytes_per_s": rate}
                rows.append(row | (dict(runs[number]) if number < len(runs) else {}))
        return frame(rows, kind)

    def seconds(self, kind: Kind = "pandas") -> Any:
        """A frame with a row for every second of `run(live=True)`."""
        return frame(list(self.data.get("seconds", [])), kind)

    def _figures(self) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        for experiment in self.data.get("experiments", []):
            for figure in experiment["figures"]:
                yield experiment, figure

    def figures(self, kind: Kind = "pandas") -> Any:
        """A frame with a row for every value in the figures of a study.

        `op`, `request_bytes`, `depth` and `threads` are those of the point under the value, so they are there
        whether the figure draws them along its axis or names them in a series.
        """
        rows: list[Row] = []
        for experiment, figure in self._figures():
            for series in figure["series"]:
                for value in series["values"]:
                    low, high = value.get("interval_95") or (None, None)
                    point = value.get("point")
                    # A model's value has no point.
                    asked = {} if point is None else self.data["points"][point]["workload"]
                    y = value.get("y")
                    rows.append(
                        {
                            "experiment": experiment["id"],
                            "figure": figure["id"],
                            "series": series["name"],
                            "x_name": figure["x"],
                            "x": float(value["x"]),
                            "y_name": figure["y"],
                            "y": None if y is None else float(y),
                            "y_low_95": low,
                            "y_high_95": high,
                            "point": point,
                            "op": asked.get("op"),
                            "pattern": asked.get("pattern"),
                            "request_bytes": asked.get("request_bytes"),
                            "depth": asked.get("depth"),
                            "threads": asked.get("threads"),
                        }
                    )
        return frame(rows, kind)

    def plot(self, figure: str | None = None, ax: Any = None) -> Any:
        """Draws a study's figures, or the rate of every point of a sweep or run; returns the matplotlib figure.

        `figure` is the `id` of one figure; `ax` draws it into axes that are there.
        """
        from ._plot import plot_results

        return plot_results(self, figure, ax)


@dataclass(frozen=True)
class Comparison(Document):
    """What `halfpower compare` found."""

    @property
    def sides(self) -> tuple[str, str]:
        """The names of the two sides."""
        return str(self.data["a"]), str(self.data["b"])

    def differences(self, kind: Kind = "pandas") -> Any:
        """A frame with a row for every difference.

        `measure` says the unit of `a` and `b`: `throughput` is in bytes per second, latencies are in nanoseconds.
        """
        rows: list[Row] = []
        for one in self.data["differences"]:
            row: Row = {name: value for name, value in one.items() if not isinstance(value, dict | list)}
            # The settings as the comparison shows them, such as `request`: `64 KiB`.
            row.update((f"of_{name}", value) for name, value in one.get("keys", []))
            low, high = one.get("interval_95_percent") or (None, None)
            row.update(change_percent_low_95=low, change_percent_high_95=high)
            rows.append(row)
        return frame(rows, kind)

    def plot(self, ax: Any = None) -> Any:
        """Draws the ratio of every difference with its interval; returns the matplotlib figure."""
        from ._plot import plot_comparison

        return plot_comparison(self, ax)


@dataclass(frozen=True)
class Tuning(Document):
    """What `halfpower tune` tried."""

    def trials(self, kind: Kind = "pandas") -> Any:
        """A frame with a row for every trial."""
        plain = bool | int | float | str
        rows = [
            {name: value for name, value in one.items() if value is None or isinstance(value, plain)}
            for one in self.data["tried"]
        ]
        return frame(rows, kind)


_KINDS: dict[str, type[Document]] = {
    "halfpower.results/1": Results,
    "halfpower.compare/1": Comparison,
    "halfpower.tune/1": Tuning,
}


def parse(text: str | bytes, name: str = "the text") -> Document:
    """A document from its JSON.

    Raises:
        DocumentError: it is not a document of halfpower, or one of a version that is not known here.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise DocumentError(f"{name} is not JSON: {error}") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, str) or schema not in _KINDS:
        known = ", ".join(_KINDS)
        raise DocumentError(f"{name} has the schema {schema!r}; this module reads {known}")
    return _KINDS[schema](data)


def read(path: str | PathLike[str]) -> Document:
    """Reads a document; of a directory the results inside.

    Raises:
        DocumentError: see `parse`.
        OSError: the file cannot be read.
    """
    path = Path(path)
    inside = [path / name for name in _INSIDE]
    file = next((one for one in inside if one.is_file()), path)
    return parse(file.read_bytes(), str(file))
