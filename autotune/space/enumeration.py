"""The enumerator: every legal layout of a search space as one table, and how many combinations each rule rejected.

The product of the axes is never built. One axis is added at a time, and a rule runs as soon as all the axes that it
names are there; the survivors alone meet the next axis. A rejected row stands for as many combinations as the axes to
come have values in all, so that

    sum(rejected) + valid = total = product of the numbers of values     (exactly, in Python integers)
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from autotune.errors import InputError
from autotune.space.arithmetic_rules import DEGREES
from autotune.space.optional_rules import runs_schedules
from autotune.space.rules import Reason, Rule
from autotune.space.values import Codes, axis_values
from autotune.spec.axes import AXES, AxisKind
from autotune.spec.layout import BoolColumn, IntColumn, Layout, LayoutTable
from autotune.spec.search_space import SearchSpace
from autotune.spec.workload import Problem

EXPANSION: tuple[str, ...] = (
    "pp", "schedule", "vpp", "tp", "cp", "dp_shard", "dp_replicate", "zero_stage", "sequence_parallel", "ep", "etp",
    "micro_batch_size", "recompute",
)  # fmt: skip
"""The order in which axes are added, and so the order of the rows: axes whose rules reject most come first."""

BLOCK_ROWS = 1 << 21
"""Most rows that are judged at once, which bounds the memory of a stage."""

MOST_ROWS = 8_000_000
"""Most layouts in a table: its columns then take 0.8 GB, and what the cost model says of it about twice that."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Enumeration:
    """The layouts of a space.

    table: the legal layouts in a fixed order, behind them the kept ones that the space does not hold; total:
    combinations in the space; valid: legal ones among them; rejected: combinations by the rule that they broke first;
    emptied_by: when there is no legal layout, the rules that rejected the last ones, each with one of their sentences.
    """

    table: LayoutTable
    total: int
    valid: int
    rejected: dict[str, int]
    emptied_by: tuple[Reason, ...] = ()


def enumerate_layouts(
    space: SearchSpace,
    problem: Problem,
    rules: tuple[Rule, ...],
    *,
    schedules: tuple[str, ...],
    keep: tuple[Layout, ...] = (),
) -> Enumeration:
    """All legal layouts of the space that use every GPU, under rules and schedules of an engine.

    keep: layouts that the table holds whatever the space says; the caller has made sure that they are legal. Raises
    InputError if the space has more legal layouts than a table can hold.
    """
    values = axis_values(space, problem, schedules)
    ordered = rule_order(rules, schedules)
    columns: dict[str, IntColumn] = {}
    rejected: Counter[str] = Counter()
    emptied_by: tuple[Reason, ...] = ()
    to_come = math.prod(len(codes) for codes in values.values())
    total = to_come
    for axis in EXPANSION:
        due = tuple(rule for rule in ordered if _stage(rule) == EXPANSION.index(axis))
        to_come //= max(1, len(values[axis]))
        grown, broken = _add_axis(columns, axis, values[axis], due, problem)
        rejected.update({code: rows * to_come for code, rows in broken.items()})
        if not len(grown[axis]):
            emptied_by = _sentences(columns, axis, values[axis], due, problem) or (_no_value(axis),)
            columns = {}
            break
        columns = grown
    legal = _table(columns, len(columns["tp"]) if columns else 0)
    return Enumeration(
        table=_with_kept(legal, keep),
        total=total,
        valid=len(legal),
        rejected=_in_order(rejected, ordered),
        emptied_by=emptied_by,
    )


def rule_order(rules: tuple[Rule, ...], schedules: tuple[str, ...]) -> tuple[Rule, ...]:
    """The rules of an enumeration in the fixed order in which they run.

    A rule comes with the axis that completes its axes, rules of that axis alone first.
    """
    everything = (*_uses_all_gpus(), runs_schedules(schedules), *rules)
    return tuple(sorted(everything, key=lambda rule: (_stage(rule), len(rule.axes) > 1)))


def _stage(rule: Rule) -> int:
    return max((EXPANSION.index(axis) for axis in rule.axes), default=0)


def _uses_all_gpus() -> Iterator[Rule]:
    """A search uses every GPU: the whole product equals their number, and so each partial product divides it."""
    added = sorted(DEGREES, key=EXPANSION.index)
    for count in range(1, len(added) + 1):
        yield _product_rule(tuple(added[:count]), whole=count == len(added))


def _product_rule(axes: tuple[str, ...], *, whole: bool) -> Rule:
    def product(table: LayoutTable) -> IntColumn:
        columns: list[IntColumn] = [getattr(table, axis) for axis in axes]
        return math.prod(columns[1:], start=columns[0])

    def holds(table: LayoutTable, problem: Problem) -> BoolColumn:
        gpus = problem.cluster.gpus
        return np.asarray(product(table) == gpus if whole else gpus % product(table) == 0, dtype=np.bool_)

    def reason(table: LayoutTable, row: int, problem: Problem) -> str:
        factors = "·".join(str(getattr(table, axis)[row]) for axis in axes)
        text = factors if len(axes) == 1 else f"{factors} = {product(table)[row]}"
        relation = "is not" if whole else "does not divide"
        return (
            f"{'·'.join(axes)} = {text} {relation} the {problem.cluster.gpus} GPUs of {problem.cluster.name}, and a "
            f"search uses all of them; free one of these axes, or give degrees whose product is {problem.cluster.gpus}"
        )

    return Rule(code="uses-all-gpus", axes=axes, holds=holds, reason=reason)


def _add_axis(
    columns: dict[str, IntColumn], axis: str, codes: Codes, rules: tuple[Rule, ...], problem: Problem
) -> tuple[dict[str, IntColumn], Counter[str]]:
    """Cross the table with one more axis and keep the rows that hold, with how many rows each rule rejected first."""
    broken: Counter[str] = Counter()
    rows = len(next(iter(columns.values()))) if columns else 1
    values = np.asarray(codes, dtype=np.int64)
    alone = tuple(rule for rule in rules if set(rule.axes) <= {axis})
    values = values[_judge({axis: values}, len(values), alone, problem, broken, weight=rows)]

    together = tuple(rule for rule in rules if rule not in alone)
    parents, chosen, kept = [], [], 0
    block = max(1, BLOCK_ROWS // max(1, len(values)))
    for start in range(0, rows, block):
        parent, value = _crossed(start, min(start + block, rows), values)
        if together:
            named = {name for rule in together for name in rule.axes} - {axis}
            seen = {name: columns[name][parent] for name in named} | {axis: value}
            holds = _judge(seen, len(value), together, problem, broken)
            parent, value = parent[holds], value[holds]
        parents.append(parent)
        chosen.append(value)
        kept += len(value)
        if kept > MOST_ROWS:
            raise _too_many(axis)
    parent = np.concatenate(parents)
    return {name: column[parent] for name, column in columns.items()} | {axis: np.concatenate(chosen)}, broken


def _too_many(axis: str) -> InputError:
    before = EXPANSION[: EXPANSION.index(axis) + 1]
    return InputError.one(
        f"the axes {', '.join(before)} alone make more than {MOST_ROWS} legal layouts, too many for one table; list "
        f"fewer values or set a maximum, for instance of {before[-1]}",
        where="--space",
        key=axis,
    )


def _crossed(start: int, stop: int, values: IntColumn) -> tuple[IntColumn, IntColumn]:
    return np.repeat(np.arange(start, stop), len(values)), np.tile(values, stop - start)


def _judge(
    seen: dict[str, IntColumn],
    rows: int,
    rules: tuple[Rule, ...],
    problem: Problem,
    broken: Counter[str],
    *,
    weight: int = 1,
) -> BoolColumn:
    """Where all rules hold; adds to `broken` the rows that each rule is the first to reject."""
    alive = np.ones(rows, dtype=np.bool_)
    table = _table(seen, rows)
    for rule in rules:
        holds = alive & rule.holds(table, problem)
        lost = int(np.count_nonzero(alive)) - int(np.count_nonzero(holds))
        if lost:
            broken[rule.code] += lost * weight
        alive = holds
    return alive


def _table(columns: dict[str, IntColumn], rows: int) -> LayoutTable:
    """A table of the columns there are; the others are a zero that takes no memory and that no rule may read."""
    absent = np.broadcast_to(np.int64(0), rows)
    whole: dict[str, Any] = {axis.name: columns.get(axis.name, absent) for axis in AXES}
    flags = [axis.name for axis in AXES if axis.kind is AxisKind.FLAG]
    return LayoutTable(**(whole | {name: whole[name].astype(np.bool_) for name in flags}))


def _no_value(axis: str) -> Reason:
    message = (
        f"the space allows no value of {axis}; list values for it, raise its maximum, or leave it out (then it is off)"
    )
    return Reason(code="axis-has-values", axes=(axis,), message=message)


def _sentences(
    columns: dict[str, IntColumn], axis: str, codes: Codes, rules: tuple[Rule, ...], problem: Problem
) -> tuple[Reason, ...]:
    """Why a stage lost every row: for each rule that had a part in it, its sentence on the first row that it rejected.

    Judges the first block of rows. A rule of canonical form is named only when no other rule had a part.
    """
    rows = len(next(iter(columns.values()))) if columns else 1
    values = np.asarray(codes, dtype=np.int64)
    parent, value = _crossed(0, min(rows, max(1, BLOCK_ROWS // max(1, len(values)))), values)
    table = _table({name: column[parent] for name, column in columns.items()} | {axis: value}, len(value))
    alive = np.ones(len(value), dtype=np.bool_)
    first: list[tuple[Rule, int]] = []
    for rule in rules:
        lost = np.flatnonzero(alive & ~rule.holds(table, problem))
        first.extend((rule, int(row)) for row in lost[:1])
        alive[lost] = False
    sharp = [found for found in first if not found[0].canonical] or first
    return tuple(
        Reason(code=rule.code, axes=rule.axes, message=rule.reason(table, row, problem)) for rule, row in sharp
    )


def _with_kept(table: LayoutTable, keep: tuple[Layout, ...]) -> LayoutTable:
    missing = [layout for layout in dict.fromkeys(keep) if table.row_of(layout) is None]
    if not missing:
        return table
    extra = LayoutTable.of(missing)
    return LayoutTable(
        **{axis.name: np.concatenate([getattr(table, axis.name), getattr(extra, axis.name)]) for axis in AXES}
    )


def _in_order(rejected: Counter[str], ordered: tuple[Rule, ...]) -> dict[str, int]:
    return {code: rejected[code] for code in dict.fromkeys(rule.code for rule in ordered) if rejected[code]}
