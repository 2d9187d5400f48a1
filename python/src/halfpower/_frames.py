"""Rows of plain values as frames of pandas or polars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

Kind = Literal["pandas", "polars"]

Row = dict[str, Any]


def _type(values: Sequence[Any]) -> type | None:
    """The one type of a column: integers and floats together are floats."""
    types = {type(value) for value in values if value is not None}
    if types == {int, float}:
        return float
    return types.pop() if len(types) == 1 else None


def frame(rows: Sequence[Row], kind: Kind = "pandas") -> Any:
    """A frame with a column for every key, in the order of their first use.

    Missing values are missing, not zero: booleans and integers stay booleans and integers beside them.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    if kind == "pandas":
        import pandas

        types = {bool: "boolean", int: "Int64", float: "Float64", str: "string"}
        series = {
            name: pandas.Series(values, dtype=types.get(_type(values) or object, "object"))
            for name, values in columns.items()
        }
        return pandas.DataFrame(series)
    if kind == "polars":
        import polars

        kinds = {
            bool: polars.Boolean,
            int: polars.Int64,
            float: polars.Float64,
            str: polars.String,
        }
        # Seeds may need all 64 bits.
        large = {
            name
            for name, values in columns.items()
            if _type(values) is int and max(value for value in values if value is not None) > 2**63 - 1
        }
        types_of = {
            name: polars.UInt64 if name in large else kinds.get(_type(values) or object)
            for name, values in columns.items()
        }
        return polars.DataFrame(
            {
                name: polars.Series(name, values, dtype=types_of[name], strict=False)
                for name, values in columns.items()
            }
        )
    raise ValueError(f"frame {kind!r}: write 'pandas' or 'polars'")


def finite(value: Any) -> float:
    """A number for a figure; missing values leave a gap."""
    return math.nan if value is None else float(value)
