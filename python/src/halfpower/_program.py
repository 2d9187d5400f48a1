"""Runs the program as another process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ._document import Comparison, Results, parse
from ._frames import Kind, frame

#: Names the program instead of the one that was installed with this module.
VARIABLE = "HALFPOWER_PROGRAM"

Target = str | PathLike[str]

#: A value of an option; a list is written with commas, `True` is the option alone.
Value = str | int | float | bool | PathLike[str] | Sequence[str | int | float | PathLike[str]] | None


class ProgramError(RuntimeError):
    """The program failed; the message is its own."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        #: Exit code; negative for a signal.
        self.code = code


class Refused(ProgramError, ValueError):
    """The program refused the options, and measured nothing."""


class Interrupted(ProgramError):
    """The program was interrupted; its runs are kept for `resume=True`."""


def program() -> str:
    """The path of the program: `$HALFPOWER_PROGRAM`, else the one installed with this module, else that on PATH.

    Raises:
        FileNotFoundError: there is none.
    """
    if named := os.environ.get(VARIABLE):
        return named
    own = Path(sysconfig.get_path("scripts")) / "halfpower"
    found = str(own) if own.is_file() else shutil.which("halfpower")
    if found is None:
        raise FileNotFoundError(
            f"halfpower is neither in {own.parent} nor on PATH: pip install halfpower, or set {VARIABLE} to the program"
        )
    return found


def _words(value: Any) -> str:
    if isinstance(value, str | os.PathLike):
        return os.fspath(value) if not isinstance(value, bytes) else value.decode()
    if isinstance(value, Sequence):
        return ",".join(_words(one) for one in value)
    return str(value)


#: Options that are given once for each value.
_REPEATED = {"destroy_data", "beside", "knob", "fail_if", "measure"}


def arguments(options: dict[str, Value]) -> list[str]:
    """The words of options: `request="4k"`, `depth=[1, 8]`, `buffered=True`; `None` and `False` leave one out."""
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif name in _REPEATED and isinstance(value, Sequence) and not isinstance(value, str):
            for one in value:
                words += [option, _words(one)]
        else:
            words += [option, _words(value)]
    return words


def _run(words: Sequence[str], progress: bool) -> str:
    # Standard error goes to the caller's, if the caller wants to watch.
    shown = ["--progress", "auto" if progress else "none"]
    process = subprocess.Popen(
        [program(), *words, *shown],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if progress else subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        output, errors = process.communicate()
    except BaseException:
        # The terminal's Ctrl-C reaches the program as well: it removes its files and ends.
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
        raise
    code = process.returncode
    if code in (0, 3):
        if errors:
            sys.stderr.write(errors)
        return output
    message = (errors or f"halfpower ended with {code}; see its messages").strip()
    if code == 2:
        raise Refused(message, code)
    if code == 130:
        raise Interrupted(message, code)
    raise ProgramError(message, code)


def _targets(target: Target | Sequence[Target]) -> list[str]:
    several = [target] if isinstance(target, str | os.PathLike) else list(target)
    return [os.fspath(one) for one in several]


def _results(text: str) -> Results:
    document = parse(text, "the output of halfpower")
    assert isinstance(document, Results)
    return document


def study(
    target: Target | Sequence[Target] = ".",
    *,
    output: Target | None = None,
    progress: bool = False,
    **options: Value,
) -> Results:
    """Runs every experiment that fits the target and the time: `study("/mnt/data", quick=True, budget="1m")`.

    `output` is the directory for the report and the tables; without one they are dropped. Other options are those of
    `halfpower study`, with underscores.

    Raises:
        Refused: the program refused the options.
        Interrupted: it was interrupted; `resume=True` goes on.
        ProgramError: it failed.
    """
    with TemporaryDirectory(prefix="halfpower-python-") as dropped:
        directory = dropped if output is None else os.fspath(output)
        words = ["study", *_targets(target), "--json", "--output", directory, *arguments(options)]
        return _results(_run(words, progress))


def sweep(
    target: Target | Sequence[Target] = ".", *, progress: bool = False, **options: Value
) -> Results:
    """Measures every combination of lists: `sweep(".", request=["4k", "64k"], depth=[1, 8])`.

    Raises:
        ProgramError: as `study`.
    """
    words = ["sweep", *_targets(target), "--json", *arguments(options)]
    return _results(_run(words, progress))


def run(target: Target | Sequence[Target] = ".", *, progress: bool = False, **options: Value) -> Results:
    """Measures one workload: `run(".", op="write", request="64k", depth=8)`.

    Raises:
        ProgramError: as `study`.
    """
    words = ["run", *_targets(target), "--json", *arguments(options)]
    return _results(_run(words, progress))


def _on_disk(side: Target | Results, directory: str, name: str) -> str:
    if isinstance(side, Results):
        path = Path(directory) / name
        side.save(path)
        return str(path)
    return os.fspath(side)


def compare(a: Target | Results, b: Target | Results, **options: Value) -> Comparison:
    """Compares two results, or files that `halfpower compare` reads.

    Raises:
        ProgramError: as `study`.
    """
    with TemporaryDirectory(prefix="halfpower-python-") as directory:
        sides = [_on_disk(a, directory, "a.json"), _on_disk(b, directory, "b.json")]
        document = parse(_run(["compare", *sides, "--json", *arguments(options)], False))
    assert isinstance(document, Comparison)
    return document


def _history_row(entry: dict[str, Any]) -> dict[str, Any]:
    plain = bool | int | float | str
    row = {name: value for name, value in entry.items() if value is None or isinstance(value, plain)}
    row["tags"] = ", ".join(entry.get("tags") or [])
    return row


def history(
    kind: Kind = "pandas", *, file: Target | None = None, points: bool = False, **options: Value
) -> Any:
    """A frame of everything measured so far: a row for every entry, or for every point of every entry.

    `file` is the history; without one it is the program's own. Other options are those of `halfpower history`.

    Raises:
        ProgramError: as `study`.
    """
    of = [] if file is None else ["--history", os.fspath(file)]
    if not points:
        entries = json.loads(_run(["history", "--json", *of, *arguments(options)], False))
        rows = entries["entries"] if isinstance(entries, dict) else entries
        return frame([_history_row(one) for one in rows], kind)
    from ._document import _point_row

    rows = []
    for line in _run(["history", "export", "--format", "json", *of], False).splitlines():
        entry = json.loads(line)
        document = entry.get("document") or {}
        if document.get("schema") != "halfpower.results/1":
            continue
        for index, point in enumerate(document["points"]):
            named = {
                "entry": entry.get("id") or entry.get("entry"),
                "began_unix_s": document["began_unix_s"],
                "kind": document["kind"],
                "target": document["target"]["name"],
            }
            rows.append(named | _point_row(index, point))
    return frame(rows, kind)
