"""Run halfpower from Python, and read what it writes.

Every number has its unit in its name: ``_bytes``, ``_ns``, ``_bytes_per_s``, ``_percent``; ``iops`` is requests per
second.
"""

from ._document import Comparison, Document, DocumentError, Peak, Results, Tuning, parse, read
from ._program import (
    Interrupted,
    ProgramError,
    Refused,
    arguments,
    compare,
    history,
    program,
    run,
    study,
    sweep,
)

__all__ = [
    "Comparison",
    "Document",
    "DocumentError",
    "Interrupted",
    "Peak",
    "ProgramError",
    "Refused",
    "Results",
    "Tuning",
    "arguments",
    "compare",
    "history",
    "parse",
    "program",
    "read",
    "run",
    "study",
    "sweep",
]
