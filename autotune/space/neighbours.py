"""The smallest changes that make an invalid layout legal."""

from collections.abc import Iterable, Iterator
from itertools import combinations

import numpy as np

from autotune.space.rules import Rule
from autotune.space.values import every_value
from autotune.spec.axes import AXES, AXIS_BY_NAME, AXIS_NAMES, AxisKind
from autotune.spec.layout import BoolColumn, FloatColumn, IntColumn, Layout, LayoutTable, code_of
from autotune.spec.workload import Problem

MOST_AXES = 3
"""A repair that touches more axes than this is another layout, not a repair."""


def repairs(
    layout: Layout,
    problem: Problem,
    rules: tuple[Rule, ...],
    *,
    schedules: tuple[str, ...] = ("1f1b",),
    most: int = 5,
) -> tuple[Layout, ...]:
    """The legal layouts that differ from this one in the fewest axes; none if that takes too many.

    A repair uses at least as many GPUs as the layout does, or all of them; those that use all come first, among these
    the nearest. schedules: those that it may change to.
    """
    codes = {name: code_of(name, getattr(layout, name)) for name in AXIS_NAMES}
    others = {
        name: np.array([code for code in every_value(name, problem, schedules) if code != codes[name]], dtype=np.int64)
        for name in AXIS_NAMES
    }
    fewest_gpus = min(layout.gpus, problem.cluster.gpus)
    for count in range(1, MOST_AXES + 1):
        legal = [
            table.take(_holds(table, problem, rules) & (table.gpus >= fewest_gpus))
            for table in _changed(codes, others, count)
        ]
        found = [
            (distance, table.layout(row)) for table in legal for row, distance in enumerate(_distance(table, codes))
        ]
        if found:
            found.sort(key=lambda pair: (pair[1].gpus < problem.cluster.gpus, pair[0], pair[1].key))
            return tuple(near for _, near in found[:most])
    return ()


def _changed(codes: dict[str, int], others: dict[str, IntColumn], count: int) -> Iterator[LayoutTable]:
    """For every choice of `count` axes, the table of all layouts that differ in exactly these."""
    for names in combinations(AXIS_NAMES, count):
        grid = np.meshgrid(*(others[name] for name in names), indexing="ij")
        changed = {name: column.ravel() for name, column in zip(names, grid, strict=True)}
        rows = len(changed[names[0]])
        if rows:
            yield LayoutTable.from_columns({name: changed.get(name, np.full(rows, codes[name])) for name in AXIS_NAMES})


def _holds(table: LayoutTable, problem: Problem, rules: Iterable[Rule]) -> BoolColumn:
    alive = np.ones(len(table), dtype=np.bool_)
    for rule in rules:
        alive &= rule.holds(table, problem)
    return alive


def _distance(table: LayoutTable, codes: dict[str, int]) -> FloatColumn:
    """How far each row is: doublings of a degree, and one for a choice that differs."""
    far = np.zeros(len(table))
    for axis in AXES:
        column = getattr(table, axis.name)
        if AXIS_BY_NAME[axis.name].kind is AxisKind.DEGREE:
            far += np.abs(np.log2(column / codes[axis.name]))
        else:
            far += column != codes[axis.name]
    return far
