"""AccuracyReport: everything that the terminal, the JSON, the markdown and the plots show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from autotune.accuracy.axes import AxisErrors, errors_by_axis
from autotune.accuracy.blame import Suspicion, blame_memory, blame_time
from autotune.accuracy.calibrated import calibrate_sweeps
from autotune.accuracy.predict import predict, skipped_run
from autotune.accuracy.prediction import PredictedRun
from autotune.accuracy.step_time import complete
from autotune.accuracy.summary import Summary, is_scored, summarise
from autotune.spec.measured import MeasuredRun, SkippedRun

WORST: Final = 10
"""Rows of each list of worst ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AccuracyReport:
    """files: what was read; rows: what was predicted and scored; taken: rows used to calibrate, and so not scored.

    worst_times, worst_memory: the largest errors, largest first; missed: ran out of memory and was said to fit.
    """

    files: tuple[Path, ...]
    calibrate: int
    rows: tuple[PredictedRun, ...]
    taken: tuple[PredictedRun, ...]
    skipped: tuple[SkippedRun, ...]
    summary: Summary
    worst_times: tuple[Suspicion, ...]
    worst_memory: tuple[Suspicion, ...]
    missed: tuple[PredictedRun, ...]
    axes: tuple[AxisErrors, ...]


def accuracy_report(
    files: Sequence[Path], runs: Sequence[MeasuredRun], skipped: Sequence[SkippedRun], *, calibrate: int
) -> AccuracyReport:
    """Predict, calibrate if asked (0: not), and score. Runs that their file calls suspect are left out and listed."""
    suspect = [skipped_run(run, "the file marks it as suspect") for run in runs if run.suspect]
    rows, illegal = predict([complete(run) for run in runs if not run.suspect])
    unscored = [skipped_run(row.run, _nothing_to_score(row)) for row in rows if not is_scored(row)]
    scored = [row for row in rows if is_scored(row)]
    taken: tuple[PredictedRun, ...] = ()
    if calibrate:
        calibrated = calibrate_sweeps(scored, calibrate)
        scored, taken = list(calibrated.rest), calibrated.taken
    left_out = (*skipped, *suspect, *illegal, *unscored)
    return AccuracyReport(
        files=tuple(files),
        calibrate=calibrate,
        rows=tuple(scored),
        taken=taken,
        skipped=left_out,
        summary=summarise(scored, left_out, taken),
        worst_times=_worst(blame_time, scored),
        worst_memory=_worst(blame_memory, scored),
        missed=tuple(row for row in scored if row.run.oom and not row.out_of_memory),
        axes=tuple(errors_by_axis(scored)),
    )


def _worst(
    blame: Callable[[Sequence[PredictedRun]], list[Suspicion]], rows: Sequence[PredictedRun]
) -> tuple[Suspicion, ...]:
    return tuple(sorted(blame(rows), key=lambda suspicion: -abs(suspicion.error))[:WORST])


def _nothing_to_score(row: PredictedRun) -> str:
    if row.run.peak_memory_bytes is not None:
        return "what its peak counts, or of which rank it is, cannot be compared, and it has no step time"
    return "neither a step time, a peak nor an out-of-memory label can be scored"
