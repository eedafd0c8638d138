"""Which values each axis can take in a problem, before any rule: those the user listed, or every one."""

from collections.abc import Iterable

from autotune.space.divisors import divisors
from autotune.spec.axes import AXES, AXIS_BY_NAME, Axis, AxisKind
from autotune.spec.layout import code_of
from autotune.spec.search_space import SearchSpace
from autotune.spec.workload import Problem

Codes = tuple[int, ...]
"""Values of one axis as a table stores them, ascending and each once."""


def axis_values(space: SearchSpace, problem: Problem, schedules: tuple[str, ...]) -> dict[str, Codes]:
    """Every axis with its values: those the space lists, or every one; an axis that the space does not name is off."""
    return {axis.name: _in_space(axis, space, problem, schedules) for axis in AXES}


def every_value(name: str, problem: Problem, schedules: tuple[str, ...]) -> Codes:
    """All values of an axis that can be legal.

    Degrees of GPUs divide the number of GPUs, micro-batches divide the global batch. Chunks divide the layers, or the
    layers and one or two places more, since engines count the embedding and the loss as layers (so 94 layers run as
    4·12 stages).
    """
    axis = AXIS_BY_NAME[name]
    match axis.kind:
        case AxisKind.FLAG:
            return (0, 1)
        case AxisKind.CHOICE:
            choices = schedules if name == "schedule" else axis.choices
            return _ascending(code_of(name, choice) for choice in choices)
        case AxisKind.DEGREE:
            return _degrees(name, problem)


def _degrees(name: str, problem: Problem) -> Codes:
    if name == "micro_batch_size":
        return divisors(problem.workload.global_batch_size)
    if name == "vpp":
        layers = problem.model.num_hidden_layers
        places = range(layers, layers + problem.model.mtp_layers + 3)
        return _ascending(n for count in places for n in divisors(count) if n <= layers)
    return divisors(problem.cluster.gpus)


def _in_space(axis: Axis, space: SearchSpace, problem: Problem, schedules: tuple[str, ...]) -> Codes:
    choice = space.axes.get(axis.name)
    if choice is None:
        return (code_of(axis.name, axis.off),)
    if choice.values is None:
        codes = every_value(axis.name, problem, schedules)
    else:
        codes = _ascending(code_of(axis.name, value) for value in choice.values)
    return tuple(code for code in codes if choice.maximum is None or code <= choice.maximum)


def _ascending(codes: Iterable[int]) -> Codes:
    return tuple(sorted(set(codes)))
