"""predict(): every measured run through the cost model, which sees what was run and never what was measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, get_args

import numpy as np

from autotune.accuracy.prediction import PredictedRun
from autotune.cost.estimate import estimate
from autotune.cost.feasibility import limit_bytes
from autotune.cost.profile import Factors, MemoryProfile, Recomputable
from autotune.engines.registry import ENGINES
from autotune.errors import InputError
from autotune.space.arithmetic_rules import COMMON_RULES
from autotune.space.rules import broken_rules
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.measured import MeasuredRun, SkippedRun
from autotune.spec.workload import Problem

ARITHMETIC: Final = tuple(rule for rule in COMMON_RULES if not rule.canonical)
"""What no run can break. A canonical rule only chooses between two spellings of one layout."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Question:
    """One problem and engine, with the layouts that were run. rows: their places in the list of runs."""

    problem: Problem
    engine: str
    profile: MemoryProfile
    layouts: list[Layout]
    rows: list[int]


def predict(
    runs: Sequence[MeasuredRun], factors: Factors | Mapping[str, Factors] | None = None
) -> tuple[list[PredictedRun], list[SkippedRun]]:
    """Predictions in the order of the runs, and the runs whose layout no arithmetic allows.

    factors: for all runs, or by run id (a run that is not named has none).
    """
    predicted: dict[int, PredictedRun] = {}
    skipped: list[SkippedRun] = []
    for question in _questions(runs):
        table = LayoutTable.of(question.layouts)
        good, broken = _legal(question, table)
        skipped.extend(skipped_run(runs[row], reason) for row, reason in broken)
        for group, rows in _by_factors(runs, question, good, factors):
            here = table.take(np.array(rows, dtype=np.int64))
            try:
                parts = _parts(here, question, group)
            except InputError as error:
                reason = error.faults[0].message
                skipped.extend(skipped_run(runs[question.rows[row]], reason) for row in rows)
                continue
            for row, (time_s, memory_bytes, stage) in zip(rows, parts, strict=True):
                predicted[question.rows[row]] = PredictedRun(
                    run=runs[question.rows[row]],
                    engine=question.engine,
                    profile=question.profile,
                    factors=group,
                    time_parts_s=time_s,
                    memory_parts_bytes=memory_bytes,
                    fullest_stage=stage,
                    limit_bytes=limit_bytes(question.problem.cluster, None),
                )
    return [predicted[row] for row in sorted(predicted)], skipped


def skipped_run(run: MeasuredRun, reason: str) -> SkippedRun:
    """The run as one that is not scored."""
    return SkippedRun(run_id=run.run_id, source=run.source, reason=reason, fully_described=run.fully_described)


def engine_of(run: MeasuredRun) -> str:
    """The first of the engines that describe its framework which we have."""
    return next(name for name in run.engines if name in ENGINES)


def profile_of(run: MeasuredRun) -> MemoryProfile:
    """The habits of its engine, with what the run itself says of selective recomputation."""
    profile = ENGINES[engine_of(run)].memory_on(run.problem.cluster.gpu.device)
    if run.recomputed_modules is None:
        return profile
    known: dict[str, Recomputable] = {word: word for word in get_args(Recomputable)}
    return replace(profile, selective_recompute=tuple(known[word] for word in run.recomputed_modules))


def _questions(runs: Sequence[MeasuredRun]) -> list[_Question]:
    """Runs of one problem and profile together, so that the cost model works on tables."""
    found: dict[str, _Question] = {}
    for row, run in enumerate(runs):
        profile, engine = profile_of(run), engine_of(run)
        key = repr((run.problem, engine, profile.selective_recompute))
        if key not in found:
            found[key] = _Question(problem=run.problem, engine=engine, profile=profile, layouts=[], rows=[])
        found[key].layouts.append(run.layout)
        found[key].rows.append(row)
    return list(found.values())


def _legal(question: _Question, table: LayoutTable) -> tuple[list[int], list[tuple[int, str]]]:
    """Rows of the question that no arithmetic forbids; and for the others the run and the reason."""
    holds = np.ones(len(table), dtype=np.bool_)
    for rule in ARITHMETIC:
        holds &= rule.holds(table, question.problem)
    broken = [
        (question.rows[row], broken_rules(table, int(row), question.problem, ARITHMETIC)[0].message)
        for row in np.flatnonzero(~holds)
    ]
    return [int(row) for row in np.flatnonzero(holds)], broken


def _by_factors(
    runs: Sequence[MeasuredRun],
    question: _Question,
    rows: list[int],
    factors: Factors | Mapping[str, Factors] | None,
) -> list[tuple[Factors, list[int]]]:
    if not rows:
        return []
    if factors is None or isinstance(factors, Factors):
        return [(factors or Factors(), rows)]
    groups: dict[Factors, list[int]] = {}
    for row in rows:
        own = factors.get(runs[question.rows[row]].run_id, Factors())
        groups.setdefault(own, []).append(row)
    return list(groups.items())


_Parts = tuple[dict[str, float], dict[str, float], int]


def _parts(table: LayoutTable, question: _Question, factors: Factors) -> list[_Parts]:
    estimates = estimate(table, question.problem, question.profile, factors)
    return [
        (
            {name: float(column[row]) for name, column in estimates.time.parts.items()},
            {name: float(column[row]) for name, column in estimates.memory.parts.items()},
            int(estimates.fullest_stage[row]),
        )
        for row in range(len(table))
    ]
