"""Rule: one reason why a layout is not legal, said once: a mask for the enumerator and a sentence for `check`."""

from collections.abc import Callable
from dataclasses import dataclass

from autotune.spec.layout import BoolColumn, LayoutTable
from autotune.spec.workload import Problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """axes: the only axes that `holds` and `reason` may read, so that the enumerator can apply the rule early.

    reason: the sentence for row i, with both numbers and the way out; that of an engine's rule names the engine and the
    versions it holds for ("torchtitan 0.3: …"). canonical: the row is only another spelling of a legal layout, and the
    rule is there so that each real layout is enumerated once.
    """

    code: str
    axes: tuple[str, ...]
    holds: Callable[[LayoutTable, Problem], BoolColumn]
    reason: Callable[[LayoutTable, int, Problem], str]
    canonical: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """A broken rule of one layout: what `check` and the report print."""

    code: str
    axes: tuple[str, ...]
    message: str


def broken_rules(table: LayoutTable, row: int, problem: Problem, rules: tuple[Rule, ...]) -> tuple[Reason, ...]:
    """All rules that one row breaks, in the order of `rules`."""
    one = table.take(slice(row, row + 1))
    return tuple(
        Reason(code=rule.code, axes=rule.axes, message=rule.reason(one, 0, problem))
        for rule in rules
        if not bool(rule.holds(one, problem)[0])
    )
