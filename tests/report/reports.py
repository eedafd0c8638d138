"""Scored tables and reports with figures set by hand, so that no test of a rendering depends on the cost model."""

import numpy as np

from autotune.cost.estimates import Estimates, MemoryEstimate, TimeEstimate
from autotune.cost.feasibility import verdict_codes
from autotune.cost.profile import Factors
from autotune.report.ranked import Report, SpaceSummary
from autotune.report.ranking import rank
from autotune.report.scored import ScoredTable
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.outcome import Failed, Measured, RankReport, Status, TrialResult
from autotune.spec.workload import Problem
from tests.cost.profiles import master_copy_profile
from tests.examples import GIB, problem

LIMIT_BYTES = 79.0 * GIB

KEYS = (
    "tp8-pp2-shard32-z1-sp-mbs1",
    "tp8-pp4-vpp5-shard16-z1-sp-mbs1-interleaved-recompute-selective",
    "tp4-pp4-shard32-z1-sp-mbs2-recompute-full",
    "tp2-pp2-shard128-z3-mbs1",
    "shard512-z3-mbs1",
)
STEPS_S = (10.0, 9.5, 12.25, 11.0, 8.0)
PEAKS_GIB = (60.0, 75.0, 50.0, 40.0, 90.0)
"""Usable are 79 GiB and the bound is 8 % above the peak: the second is borderline, the last does not fit."""


def scored_table(
    layouts: list[Layout] | LayoutTable,
    steps_s: object,
    peaks_bytes: object,
    *,
    question: Problem | None = None,
    factors: Factors | None = None,
    interval: tuple[float, float] | None = None,
    host_bytes: object = 0.0,
) -> ScoredTable:
    """Three quarters of a step are forward, the rest data-parallel; two thirds of the peak are weights."""
    table = layouts if isinstance(layouts, LayoutTable) else LayoutTable.of(layouts)
    steps = np.asarray(steps_s, dtype=np.float64)
    peaks = np.asarray(peaks_bytes, dtype=np.float64)
    none = np.zeros(len(table))
    time = dict.fromkeys(TimeEstimate.__dataclass_fields__, none)
    memory = dict.fromkeys(MemoryEstimate.__dataclass_fields__, none)
    estimates = Estimates(
        time=TimeEstimate(**(time | {"forward_s": 0.75 * steps, "data_parallel_s": 0.25 * steps})),
        memory=MemoryEstimate(**(memory | {"weights_bytes": peaks * 2 / 3, "activations_bytes": peaks / 3})),
        fullest_stage=np.zeros(len(table), dtype=np.int64),
        host_bytes=np.broadcast_to(np.asarray(host_bytes, dtype=np.float64), len(table)),
    )
    asked = question or question_of_512()
    profile = master_copy_profile()
    return ScoredTable(
        table=table,
        estimates=estimates,
        verdicts=verdict_codes(estimates, profile, LIMIT_BYTES, asked),
        problem=asked,
        profile=profile,
        limit_bytes=LIMIT_BYTES,
        factors=factors or Factors(),
        interval=interval,
    )


def question_of_512() -> Problem:
    """Llama-3 8B on 64 nodes of eight H100s."""
    return problem(nodes=64, gpus_per_node=8, sequence_length=8192, global_batch_size=1024)


def example_table(**changes: object) -> ScoredTable:
    """The five layouts of KEYS."""
    layouts = [Layout.from_key(key) for key in KEYS]
    return scored_table(layouts, STEPS_S, [GIB * peak for peak in PEAKS_GIB], **changes)  # type: ignore[arg-type]


def measured(step_s: float, *, peak_gib: float = 55.0) -> Measured:
    """A trial whose steps took `step_s`, one a little more and one a little less."""
    return Measured(
        warmup_step_times_s=(2 * step_s,),
        step_times_s=(step_s, 0.99 * step_s, 1.02 * step_s),
        losses=(11.5, 11.25, 11.0, 10.75),
        gradient_norms=(1.0, 1.0, 1.0, 1.0),
        ranks=(RankReport(rank=0, parameters=1000, allocated_bytes=int(peak_gib * GIB)),),
        parameters=1000,
        fingerprint={"torch": "2.13.0", "gpu": "NVIDIA H100 80GB HBM3"},
    )


def out_of_memory() -> Failed:
    return Failed(status=Status.OOM, evidence="rank-3: tried to allocate 2.0 GiB")


def report_of(
    scored: ScoredTable,
    trials: dict[str, TrialResult] | None = None,
    *,
    baseline: str | None = None,
    time_counts: bool = True,
    top: int = 20,
    run: str | None = "results/llama-3-8b-64x8xh100-seq8192-gbs1024-3f2a91c0",
    calibration: Factors | None = None,
    warnings: tuple[str, ...] = (),
) -> Report:
    """The report that these trials make of a table."""
    layout = Layout.from_key(baseline) if baseline else None
    ranking = rank(scored, trials or {}, top=top, baseline=layout, time_counts=time_counts)
    return Report(
        problem=scored.problem,
        engine="megatron-lm",
        command="autotune tune --model llama-3-8b --cluster 64x8xh100",
        tool_version="0.1.0",
        space=SpaceSummary(
            enumerated=1005, valid=len(scored), invalid={"uses-all-gpus": 900, "heads-divide-tp": 100}, infeasible=1
        ),
        layouts=ranking.layouts,
        winner=ranking.winner,
        nearest_miss=ranking.nearest_miss,
        limit_bytes=scored.limit_bytes,
        run=run,
        warnings=(*warnings, *ranking.warnings),
        notes=ranking.notes,
        calibration=calibration,
        stop_reason="all 3 trials are spent" if trials else None,
        elapsed_s=2.5,
        versions={"autotune": "0.1.0", "python": "3.11.9"},
    )


def tried_report() -> Report:
    """Three trials: the first two places ran, one ran out of memory; a baseline that did not run."""
    trials: dict[str, TrialResult] = {
        KEYS[0]: measured(10.5),
        KEYS[2]: measured(10.25),
        KEYS[1]: out_of_memory(),
    }
    fitted = Factors(compute_time=1.04, communication_time=1.1, overhead_s=0.002, memory=0.97, fitted_to=3)
    scored = example_table(factors=fitted, interval=(0.9, 1.125))
    return report_of(scored, trials, baseline=KEYS[3], calibration=fitted)
