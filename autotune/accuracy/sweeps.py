"""Sweeps: runs that differ in their layouts alone, and how well their order is predicted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from autotune.accuracy.prediction import PredictedRun
from autotune.accuracy.scores import MIN_LAYOUTS, kendall, regret, spearman
from autotune.spec.measured import SweepKey


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepScore:
    """Of one sweep: distinct layouts, rank correlations, and the regret of the layout predicted to be the fastest."""

    key: SweepKey
    layouts: int
    spearman: float
    kendall: float
    regret: float
    first_pick: str
    best: str


def sweeps_of(rows: Iterable[PredictedRun]) -> dict[SweepKey, list[PredictedRun]]:
    """Rows by sweep, in order."""
    found: dict[SweepKey, list[PredictedRun]] = {}
    for row in rows:
        found.setdefault(row.run.sweep, []).append(row)
    return found


def score_sweeps(rows: Iterable[PredictedRun]) -> list[SweepScore]:
    """Every sweep with enough distinct layouts that have a step time; repeats of a layout are averaged."""
    timed = [row for row in rows if row.measured_step_time_s is not None]
    scores = (_score(key, members) for key, members in sweeps_of(timed).items())
    return [score for score in scores if score is not None]


def _score(key: SweepKey, rows: Sequence[PredictedRun]) -> SweepScore | None:
    by_layout: dict[str, list[PredictedRun]] = {}
    for row in rows:
        by_layout.setdefault(row.run.layout.key, []).append(row)
    if len(by_layout) < MIN_LAYOUTS:
        return None
    layouts = list(by_layout)
    predicted = [fmean(row.step_time_s for row in members) for members in by_layout.values()]
    measured = [fmean(row.measured_step_time_s or 0.0 for row in members) for members in by_layout.values()]
    return SweepScore(
        key=key,
        layouts=len(layouts),
        spearman=spearman(predicted, measured),
        kendall=kendall(predicted, measured),
        regret=regret(predicted, measured),
        first_pick=layouts[predicted.index(min(predicted))],
        best=layouts[measured.index(min(measured))],
    )
