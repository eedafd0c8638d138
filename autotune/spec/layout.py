"""Layout: one value for every axis. LayoutTable: one row a layout, one column an axis."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.spec.axes import AXES, AXIS_BY_NAME, Axis, AxisKind, AxisValue

IntColumn = NDArray[np.int64]
BoolColumn = NDArray[np.bool_]
FloatColumn = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """One value for every axis; the defaults are "off"."""

    tp: int = 1
    pp: int = 1
    vpp: int = 1
    dp_replicate: int = 1
    dp_shard: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 1
    zero_stage: int = 0
    sequence_parallel: bool = False
    micro_batch_size: int = 1
    schedule: str = "1f1b"
    recompute: str = "none"

    @property
    def dp(self) -> int:
        """Data-parallel ranks."""
        return self.dp_replicate * self.dp_shard

    @property
    def gpus(self) -> int:
        """GPUs that the layout uses."""
        return self.tp * self.cp * self.pp * self.dp

    def num_microbatches(self, global_batch_size: int) -> int:
        """Micro-batches per replica and step, rounded down."""
        return global_batch_size // (self.micro_batch_size * self.dp)

    @property
    def key(self) -> str:
        """The canonical name, e.g. "tp8-pp2-shard32-z1-sp-mbs1-recompute-full"; axes that are off are left out."""
        parts = [_key_part(axis, getattr(self, axis.name)) for axis in AXES]
        return "-".join(part for part in parts if part)

    @classmethod
    def from_key(cls, key: str) -> "Layout":
        """The layout that `key` names. Raises ValueError with the part that is not understood."""
        return cls(**dict(_parse_key(key)))


def _key_part(axis: Axis, value: AxisValue) -> str:
    if value == axis.off and axis.name != "micro_batch_size":
        return ""
    return axis.prefix if axis.kind is AxisKind.FLAG else f"{axis.prefix}{value}"


def _parse_key(key: str) -> Iterable[tuple[str, Any]]:
    rest = key
    for axis in AXES:
        value = "|".join(re.escape(str(choice)) for choice in sorted(axis.choices, key=str, reverse=True)) or r"\d+"
        pattern = axis.prefix if axis.kind is AxisKind.FLAG else f"{axis.prefix}({value})"
        match = re.match(rf"(?:{pattern})(?:-|$)", rest)
        if match is None:
            continue
        rest = rest[match.end() :]
        text = match.group(1) if axis.kind is not AxisKind.FLAG else ""
        yield axis.name, True if axis.kind is AxisKind.FLAG else int(text) if isinstance(axis.off, int) else text
    if rest:
        msg = f"'{rest}' in the layout key '{key}' names no axis"
        raise ValueError(msg)


def code_of(axis_name: str, value: AxisValue) -> int:
    """The number by which a table stores `value` of the axis: the index for text choices, else the value itself."""
    axis = AXIS_BY_NAME[axis_name]
    return axis.choices.index(value) if isinstance(axis.off, str) else int(value)


def value_of(axis_name: str, code: int) -> AxisValue:
    """The inverse of `code_of`."""
    axis = AXIS_BY_NAME[axis_name]
    if isinstance(axis.off, str):
        return axis.choices[code]
    return bool(code) if axis.kind is AxisKind.FLAG else int(code)


@dataclass(frozen=True, kw_only=True)
class LayoutTable:
    """Columns of equal length. Text axes (schedule, recompute) hold codes: `code_of("schedule", "zb-v")`."""

    tp: IntColumn
    pp: IntColumn
    vpp: IntColumn
    dp_replicate: IntColumn
    dp_shard: IntColumn
    cp: IntColumn
    ep: IntColumn
    etp: IntColumn
    zero_stage: IntColumn
    sequence_parallel: BoolColumn
    micro_batch_size: IntColumn
    schedule: IntColumn
    recompute: IntColumn

    def __len__(self) -> int:
        return len(self.tp)

    @cached_property
    def dp(self) -> IntColumn:
        """Data-parallel ranks."""
        return self.dp_replicate * self.dp_shard

    @cached_property
    def gpus(self) -> IntColumn:
        """GPUs that each layout uses."""
        return self.tp * self.cp * self.pp * self.dp

    def num_microbatches(self, global_batch_size: int) -> IntColumn:
        """Micro-batches per replica and step, rounded down (a rule rejects rows where that is not exact)."""
        return np.asarray(global_batch_size // (self.micro_batch_size * self.dp), dtype=np.int64)

    def take(self, rows: IntColumn | BoolColumn | slice) -> "LayoutTable":
        """The rows that a mask, an index column or a slice picks."""
        return LayoutTable(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    def row_of(self, layout: Layout) -> int | None:
        """The row that is this layout; None if there is none."""
        rows = np.arange(len(self))
        for f in fields(Layout):
            rows = rows[getattr(self, f.name)[rows] == code_of(f.name, getattr(layout, f.name))]
        return int(rows[0]) if len(rows) else None

    def layout(self, row: int) -> Layout:
        """One row as a Layout."""
        return Layout(**{f.name: value_of(f.name, int(getattr(self, f.name)[row])) for f in fields(self)})  # type: ignore[arg-type]

    @classmethod
    def of(cls, layouts: Iterable[Layout]) -> "LayoutTable":
        """A table of the given layouts, in their order."""
        many = list(layouts)
        return cls.from_columns({f.name: [code_of(f.name, getattr(x, f.name)) for x in many] for f in fields(cls)})

    @classmethod
    def from_columns(cls, columns: dict[str, Any]) -> "LayoutTable":
        """A table from columns of codes; a missing column is off. All given columns have one length."""
        length = len(next(iter(columns.values()))) if columns else 0
        whole: dict[str, Any] = {
            axis.name: np.asarray(
                columns.get(axis.name, np.full(length, code_of(axis.name, axis.off))),
                dtype=np.bool_ if axis.kind is AxisKind.FLAG else np.int64,
            )
            for axis in AXES
        }
        return cls(**whole)
