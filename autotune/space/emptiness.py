"""What to say when no layout of a space is legal: why, which axis to free, and which global batches would work."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from autotune.space.divisors import nearest_multiples, one_of
from autotune.space.enumeration import Enumeration, enumerate_layouts
from autotune.space.rules import Rule
from autotune.spec.layout import value_of
from autotune.spec.search_space import AxisChoice, SearchSpace
from autotune.spec.workload import Problem


def why_empty(enumeration: Enumeration) -> str:
    """The rules that rejected the last layouts, one sentence a line."""
    lines = [f"{reason.code}: {reason.message}" for reason in enumeration.emptied_by]
    return "\n".join([f"none of the {enumeration.total} combinations is a legal layout", *lines])


def ways_out(
    space: SearchSpace, problem: Problem, rules: tuple[Rule, ...], *, schedules: tuple[str, ...]
) -> tuple[str, ...]:
    """The restricted axes each of which, freed alone, gives legal layouts, with the values that it then has."""
    found = []
    for name, choice in space.axes.items():
        if choice.values is None and choice.maximum is None:
            continue
        freed = replace(space, axes={**space.axes, name: AxisChoice(values=None, maximum=None)})
        table = enumerate_layouts(freed, problem, rules, schedules=schedules).table
        if len(table):
            values = [value_of(name, int(code)) for code in np.unique(getattr(table, name))]
            found.append(f"with the other axes as given, {name} can be {one_of(values)}")
    return tuple(found)


def nearest_batches(
    space: SearchSpace, problem: Problem, rules: tuple[Rule, ...], *, schedules: tuple[str, ...]
) -> tuple[int, ...]:
    """The global batches next to the asked one, below and above, for which the space has a legal layout.

    Empty where another batch does not help. Candidates are multiples of what the layouts need apart from the batch:
    of micro_batch_size·dp, of that times pp, and of twice that; each is tried by a real enumeration.
    """
    asked = problem.workload.global_batch_size
    candidates = sorted(
        set(_candidates(space, problem, rules, schedules)) - {asked}, key=lambda size: abs(size - asked)
    )
    nearest = []
    for side in (-1, 1):
        for size in candidates:
            if (size - asked) * side > 0 and _works(size, space, problem, rules, schedules):
                nearest.append(size)
                break
    return tuple(nearest)


def _works(
    size: int, space: SearchSpace, problem: Problem, rules: tuple[Rule, ...], schedules: tuple[str, ...]
) -> bool:
    other = replace(problem, workload=replace(problem.workload, global_batch_size=size))
    return enumerate_layouts(space, other, rules, schedules=schedules).valid > 0


def _candidates(
    space: SearchSpace, problem: Problem, rules: tuple[Rule, ...], schedules: tuple[str, ...]
) -> Iterator[int]:
    """Multiples near the batch of all steps that layouts which are legal apart from their batch would need."""
    unbatched = tuple(rule for rule in rules if "micro_batch_size" not in rule.axes)
    micro = space.axes.get("micro_batch_size")
    if micro is not None and micro.values is None:
        micro = AxisChoice(values=(1,), maximum=None)
    axes = {name: choice for name, choice in space.axes.items() if name != "micro_batch_size"}
    if micro is not None:
        axes["micro_batch_size"] = micro
    table = enumerate_layouts(replace(space, axes=axes), problem, unbatched, schedules=schedules).table
    step = table.micro_batch_size * table.dp
    for size in np.unique(np.concatenate([step, step * table.pp, 2 * step * table.pp])):
        yield from nearest_multiples(problem.workload.global_batch_size, int(size))
