"""One layout against one set of rules, as `check` does it."""

from autotune.space.rules import Reason, Rule, broken_rules
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.search_space import AxisChoice, SearchSpace
from autotune.spec.workload import Problem


def broken(layout: Layout, problem: Problem, rules: tuple[Rule, ...]) -> tuple[Reason, ...]:
    return broken_rules(LayoutTable.of([layout]), 0, problem, rules)


def codes(layout: Layout, problem: Problem, rules: tuple[Rule, ...]) -> list[str]:
    return [reason.code for reason in broken(layout, problem, rules)]


def message(code: str, layout: Layout, problem: Problem, rules: tuple[Rule, ...]) -> str:
    return next(reason.message for reason in broken(layout, problem, rules) if reason.code == code)


def space_of(**axes: tuple | None) -> SearchSpace:
    """A space of the named axes: a tuple of values, or None for every one."""
    return SearchSpace(axes={name: AxisChoice(values=values, maximum=None) for name, values in axes.items()})
