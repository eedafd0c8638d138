"""Errors by layout axis: does the model go wrong with the degree of tensor parallelism, the micro-batch, the engine?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from autotune.accuracy.prediction import PredictedRun
from autotune.accuracy.scores import bias, mape
from autotune.spec.axes import AXES

AxisValue = int | bool | str


@dataclass(frozen=True, kw_only=True, slots=True)
class AxisErrors:
    """Rows with one value of an axis; None where no row has such an error."""

    axis: str
    value: AxisValue
    rows: int
    time_mape: float | None
    time_bias: float | None
    memory_mape: float | None
    memory_bias: float | None


def _nodes(row: PredictedRun) -> AxisValue:
    return row.run.problem.cluster.nodes


BESIDE_AXES: Final[dict[str, Callable[[PredictedRun], AxisValue]]] = {
    "engine": lambda row: row.engine,
    "GPU": lambda row: row.run.problem.cluster.gpu.name,
    "nodes": _nodes,
    "precision": lambda row: row.run.problem.workload.precision,
    "attention": lambda row: row.run.problem.workload.attention,
    "sequence": lambda row: row.run.problem.workload.sequence_length,
}
"""What differs between runs besides the axes of their layouts."""


def value_on(row: PredictedRun, axis: str) -> AxisValue:
    """The value of a layout axis, or of one beside them."""
    if axis in BESIDE_AXES:
        return BESIDE_AXES[axis](row)
    value: AxisValue = getattr(row.run.layout, axis)
    return value


def axis_names() -> tuple[str, ...]:
    """The axes of a layout, then those beside them."""
    return (*(axis.name for axis in AXES), *BESIDE_AXES)


def errors_by_axis(rows: Sequence[PredictedRun]) -> list[AxisErrors]:
    """Every value of every axis that occurs, an axis with a single value left out."""
    found: list[AxisErrors] = []
    for axis in axis_names():
        groups: dict[AxisValue, list[PredictedRun]] = {}
        for row in rows:
            if row.time_error is not None or row.memory_error is not None:
                groups.setdefault(value_on(row, axis), []).append(row)
        if len(groups) < 2:
            continue
        for value in sorted(groups, key=lambda value: (isinstance(value, str), value)):
            members = groups[value]
            time = [row.time_error for row in members if row.time_error is not None]
            memory = [row.memory_error for row in members if row.memory_error is not None]
            found.append(
                AxisErrors(
                    axis=axis,
                    value=value,
                    rows=len(members),
                    time_mape=mape(time),
                    time_bias=bias(time),
                    memory_mape=mape(memory),
                    memory_bias=bias(memory),
                )
            )
    return found
