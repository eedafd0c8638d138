"""One row of a scored table, or one invalid layout, as a RankedLayout."""

from collections.abc import Mapping

import numpy as np

from autotune.cost.feasibility import VERDICTS
from autotune.cost.flops import model_flops_utilisation
from autotune.report.basis import prediction_basis
from autotune.report.ranked import RankedLayout
from autotune.report.reasons import verdict_reasons
from autotune.report.scored import ScoredTable
from autotune.space.rules import Reason
from autotune.spec.figure import Basis
from autotune.spec.layout import Layout
from autotune.spec.outcome import Failed, Measured, Status, TrialResult
from autotune.spec.verdict import Origin, Verdict
from autotune.spec.workload import Problem


def describe(
    scored: ScoredTable,
    row: int,
    origins: Mapping[str, Origin],
    *,
    place: int | None = None,
    result: TrialResult | None = None,
    time_counts: bool = True,
    baseline: bool = False,
) -> RankedLayout:
    """What is known of a legal layout. time_counts: a measured time says something about the target."""
    layout = scored.table.layout(row)
    predicted_s = float(scored.step_s[row])
    low, high = scored.interval or (None, None)
    verdict = verdict_of(VERDICTS[int(scored.verdicts[row])], result)
    measured = result if isinstance(result, Measured) else None
    measurement_ranks = measured is not None and time_counts
    ranking_s = measured.step_time_s if measured is not None and time_counts else predicted_s
    return RankedLayout(
        place=place,
        layout=layout,
        origins=dict(origins),
        predicted_s=predicted_s,
        low_s=None if low is None else low * predicted_s,
        high_s=None if high is None else high * predicted_s,
        measured_s=None if measured is None else measured.step_time_s,
        memory_bytes={name: float(column[row]) for name, column in scored.estimates.memory.parts.items()},
        time_s={name: float(column[row]) for name, column in scored.estimates.time.parts.items()},
        peak_bytes=float(scored.peak_bytes[row]),
        upper_bytes=float(scored.upper_bytes[row]),
        limit_bytes=scored.limit_bytes,
        measured_peak_bytes=(measured.peak_memory_bytes or None) if measured is not None else None,
        fullest_stage=int(scored.estimates.fullest_stage[row]),
        verdict=verdict,
        reasons=verdict_reasons(scored, row, verdict, result),
        basis=Basis.MEASURED if measurement_ranks else prediction_basis(scored.problem, scored.factors),
        result=result,
        baseline=baseline,
        tokens_per_s_per_gpu=scored.problem.workload.tokens_per_step / (ranking_s * layout.gpus),
        mfu=utilisation(scored.problem, ranking_s, layout.gpus),
    )


def describe_invalid(
    layout: Layout, origins: Mapping[str, Origin], reasons: tuple[Reason, ...], *, limit_bytes: float
) -> RankedLayout:
    """A layout that breaks rules: the reasons are all that is known."""
    return RankedLayout(
        layout=layout, origins=dict(origins), limit_bytes=limit_bytes, verdict=Verdict.INVALID, reasons=reasons
    )


def verdict_of(predicted: Verdict, result: TrialResult | None) -> Verdict:
    """A trial has the last word: what ran fits. An interrupted one says nothing."""
    match result:
        case Measured():
            return Verdict.FITS
        case Failed(status=Status.OOM):
            return Verdict.OUT_OF_MEMORY
        case None | Failed(status=Status.INTERRUPTED):
            return predicted
        case Failed():
            return Verdict.FAILED


def utilisation(problem: Problem, step_s: float, gpus: int) -> float | None:
    """Share of the dense datasheet peak at the workload's precision, or None.

    A CPU process has no such peak, and the rate that a probe measured on an unknown GPU is not one either.
    """
    gpu = problem.cluster.gpu
    peak = gpu.peak_flops_per_s.get(problem.workload.precision)
    if gpu.device == "cpu" or peak is None or peak.basis is Basis.MEASURED:
        return None
    return float(model_flops_utilisation(problem, np.array([step_s]), gpus)[0])
