"""What the tests share: the program, and documents of simulated machines, which repeat exactly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import halfpower


def pytest_configure() -> None:
    """Without an installed program, takes one that Cargo built in this tree."""
    built = [Path(__file__).parents[2] / "target" / kind / "halfpower" for kind in ("release", "debug")]
    known = [one for one in built if one.is_file()]
    if "HALFPOWER_PROGRAM" not in os.environ and known:
        os.environ["HALFPOWER_PROGRAM"] = str(max(known, key=lambda one: one.stat().st_mtime))
    os.environ["HALFPOWER_HISTORY"] = "none"
    os.environ["MPLBACKEND"] = "agg"


@pytest.fixture(scope="session")
def study() -> halfpower.Results:
    return halfpower.study("twin:nvme", quick=True, budget="20s")


@pytest.fixture(scope="session")
def sweep() -> halfpower.Results:
    return halfpower.sweep("twin:nvme", request=["4k", "64k"], depth=[1, 4])
