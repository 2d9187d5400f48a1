from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas
import polars
import pytest

import halfpower


def test_points_have_units_and_types(sweep: halfpower.Results) -> None:
    points = sweep.points()
    assert list(points["request_bytes"]) == [4096, 65536, 4096, 65536]
    assert list(points["depth"]) == [1, 1, 4, 4]
    assert (points["throughput_bytes_per_s"] > 0).all()
    assert (points["latency_p99_ns"] >= points["latency_p50_ns"]).all()
    assert points["sync_at_end"].dtype == "boolean" and not points["sync_at_end"].any()
    assert points["request_bytes"].dtype == "Int64"
    assert points["throughput_bytes_per_s"].dtype == "Float64"
    assert points["error"].isna().all(), "no point failed"
    rates = points["iops"] * points["request_bytes"]
    assert ((rates / points["throughput_bytes_per_s"] - 1).abs() < 1e-9).all()


def test_polars_has_the_same(sweep: halfpower.Results) -> None:
    one, other = sweep.points("pandas"), sweep.points("polars")
    assert isinstance(one, pandas.DataFrame) and isinstance(other, polars.DataFrame)
    assert list(one.columns) == other.columns
    assert other["verify"].dtype == polars.Boolean
    for name in one.columns:
        ours = [None if value is pandas.NA else value for value in one[name]]
        assert ours == other[name].to_list(), name
    with pytest.raises(ValueError, match="write 'pandas' or 'polars'"):
        sweep.points("arrow")  # type: ignore[arg-type]


def test_a_study_has_peaks_and_figures(study: halfpower.Results) -> None:
    peak = study.peak("read")
    point = study.points().loc[peak.point]
    assert peak.throughput_bytes_per_s == point["throughput_bytes_per_s"]
    assert peak.settings.startswith("--op read")
    with pytest.raises(KeyError, match="no peak of 'mix'"):
        study.peak("mix")
    figures = study.figures()
    measured = figures[figures["point"].notna()]
    assert len(measured) > len(figures) / 2
    assert measured["depth"].notna().all(), "a series that names the depth has it in its column"
    along = measured[measured["x_name"] == "request_bytes"]
    assert (along["request_bytes"] == along["x"]).all()
    runs = study.runs()
    assert set(runs["point"]) <= set(study.points()["point"])


def test_documents_on_disk(study: halfpower.Results, tmp_path: Path) -> None:
    study.save(tmp_path / "results.json")
    again = halfpower.read(tmp_path)
    assert isinstance(again, halfpower.Results)
    assert again == study and again.kind == "study" and again.target == "twin:nvme" and not again.incomplete
    with pytest.raises(FileExistsError):
        study.save(tmp_path / "results.json")
    with pytest.raises(halfpower.DocumentError, match=r"is not JSON"):
        halfpower.parse("{")
    for text in ["[]", '{"schema": 1}', '{"schema": "halfpower.results/2"}']:
        with pytest.raises(halfpower.DocumentError, match=r"this module reads halfpower.results/1"):
            halfpower.parse(text)


def test_comparisons(sweep: halfpower.Results) -> None:
    slower = halfpower.sweep("twin:nvme,link=50", request=["4k", "64k"], depth=[1, 4])
    comparison = halfpower.compare(sweep, slower)
    differences = comparison.differences()
    rates = differences[differences["measure"] == "throughput"]
    assert len(rates) == 4
    assert (rates["change_percent"] < 0).all() and (rates["b"] < rates["a"]).all()
    assert set(rates["of_request"]) == {"4 KiB", "64 KiB"}
    assert comparison.plot().axes[0].get_title()


def test_a_failed_point_has_no_numbers(sweep: halfpower.Results) -> None:
    data = json.loads(json.dumps(sweep.data))
    failed = {"workload": data["points"][1]["workload"], "error": "no space"}
    data["points"][1] = failed
    assert halfpower.Results(data).plot().axes
    points = halfpower.Results(data).points()
    assert points["error"][1] == "no space"
    assert points["throughput_bytes_per_s"].isna().tolist() == [False, True, False, False]


def test_plots(study: halfpower.Results, sweep: halfpower.Results) -> None:
    import matplotlib.pyplot as pyplot

    first = study.figures()["figure"][0]
    drawn = study.plot(first)
    assert len(drawn.axes) == 1 and drawn.axes[0].get_ylabel()
    assert len(study.plot().axes) == study.figures()["figure"].nunique()
    with pytest.raises(KeyError, match="the document has"):
        study.plot("nothing")
    _, axes = pyplot.subplots()
    assert sweep.plot(ax=axes).axes == [axes]
    assert len(axes.patches) == 4
    pyplot.close("all")


def test_the_program_runs_and_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = halfpower.run(tmp_path, size="1m", bytes="1m", request="64k", repeats=1, max_repeats=1)
    assert one.points()["requests"][0] == 16
    assert list(tmp_path.iterdir()) == [], "the test file is removed"
    with pytest.raises(halfpower.Refused, match="--read-percent") as refused:
        halfpower.run(tmp_path, read_percent=50)
    assert refused.value.code == 2
    monkeypatch.setenv("HALFPOWER_PROGRAM", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        halfpower.run(tmp_path)


def test_seconds_of_a_run() -> None:
    one = halfpower.run("twin:nvme", live=True, runtime="3s")
    seconds = one.seconds()
    assert list(seconds["second"]) == [0, 1, 2]
    assert ((seconds["iops"] / one.data["points"][0]["iops"] - 1).abs() < 0.01).all()
    assert (seconds["latency_p99_ns"] > 0).all()


def test_options_are_words() -> None:
    words = halfpower.arguments(
        {"request": ["4k", 65536], "buffered": True, "json": False, "seed": None, "knob": ["a", "b=1,2"]}
    )
    assert words == ["--request", "4k,65536", "--buffered", "--knob", "a", "--knob", "b=1,2"]


def test_the_history(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite"
    halfpower.run("twin:nvme", history=file)
    halfpower.sweep("twin:nvme", depth=[1, 2], history=file)
    entries = halfpower.history(file=file)
    assert sorted(entries["kind"]) == ["run", "sweep"]
    assert (entries["best_bytes_per_s"] > 0).all()
    points = halfpower.history("polars", file=file, points=True)
    assert points.height == 3 and set(points["target"]) == {"twin:nvme"}
    assert points["entry"].n_unique() == 2


def test_types() -> None:
    root = Path(__file__).parents[1]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", "/dev/null"], cwd=root, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    # The notebook draws as it does for a reader.
    monkeypatch.delenv("MPLBACKEND")
    notebook = nbformat.read(Path(__file__).parents[1] / "notebooks" / "study.ipynb", as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    kinds = {kind for cell in notebook.cells for output in cell.get("outputs", []) for kind in output.get("data", {})}
    assert {"image/png", "text/html"} <= kinds, "a figure and a table"
