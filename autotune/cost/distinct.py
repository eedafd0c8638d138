"""Distinct combinations of a few axes: expensive terms are computed once for each and then spread over the rows."""

from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar, Final, Protocol, TypeVar

import numpy as np

from autotune.spec.layout import BoolColumn, IntColumn, LayoutTable

LARGEST_CODE: Final = 2**22  # a flag for each possible code must stay small beside the columns


class Columns(Protocol):
    """A dataclass whose fields are columns of one length."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


_Columns = TypeVar("_Columns", bound=Columns)


@dataclass(frozen=True, kw_only=True, slots=True)
class Numbered:
    """A column as small numbers. number: equal for equal values, from 0 on; count: how many different ones."""

    number: IntColumn
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Combinations:
    """The distinct combinations in a table. table: one row for each; inverse: for each row of the whole, its place."""

    table: LayoutTable
    inverse: IntColumn


def numbered(table: LayoutTable, axes: Iterable[str]) -> dict[str, Numbered]:
    """The columns of `axes` as small numbers."""
    return {axis: _numbered(getattr(table, axis)) for axis in axes}


def combinations(table: LayoutTable, columns: Mapping[str, Numbered], axes: Iterable[str]) -> Combinations:
    """The combinations of `axes` in `table`. The other axes of the smaller table mean nothing: do not read them."""
    code = Numbered(number=np.zeros(len(table), dtype=np.int64), count=1)
    for axis in axes:
        column = columns[axis]
        if column.count == 1:
            continue
        if code.count * column.count > LARGEST_CODE:
            code = _numbered(code.number)
        code = Numbered(number=code.number * column.count + column.number, count=code.count * column.count)
    code = _numbered(code.number)
    rows = np.empty(code.count, dtype=np.int64)
    rows[code.number] = np.arange(len(table))
    return Combinations(table=table.take(rows), inverse=code.number)


def spread(columns: _Columns, inverse: IntColumn) -> _Columns:
    """Columns of the combinations as columns of the whole table. Arrays of several rows are spread along the last."""
    return type(columns)(**{f.name: np.take(getattr(columns, f.name), inverse, axis=-1) for f in fields(columns)})


def _numbered(column: IntColumn | BoolColumn) -> Numbered:
    """Without sorting where values are small."""
    largest = int(column.max(initial=0))
    if largest >= LARGEST_CODE:
        values, inverse = np.unique(column, return_inverse=True)
        return Numbered(number=inverse.astype(np.int64), count=len(values))
    codes = column.astype(np.int64, copy=False)
    present = np.zeros(largest + 1, dtype=np.bool_)
    present[codes] = True
    number = np.cumsum(present, dtype=np.int64) - 1
    return Numbered(number=number.take(codes), count=int(number[-1]) + 1)
