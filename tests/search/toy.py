"""A cost model small enough to follow by hand, a space of 24 layouts on 8 GPUs, and trials whose truth we know."""

from dataclasses import fields

import numpy as np

from autotune.cost.estimates import Estimates, MemoryEstimate, TimeEstimate
from autotune.cost.feasibility import DOES_NOT_FIT, FITS, VerdictColumn
from autotune.cost.profile import Factors
from autotune.search.standing import Candidates
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.outcome import Failed, Measured, RankReport, Status, TrialResult

GIB = 2**30
LIMIT_BYTES = 30.0 * GIB


def layouts() -> list[Layout]:
    return [
        Layout(
            tp=tp,
            pp=pp,
            dp_shard=8 // (tp * pp),
            zero_stage=1 if tp * pp < 8 else 0,
            micro_batch_size=mbs,
            recompute=recompute,
        )
        for tp in (1, 2, 4)
        for pp in (1, 2)
        for mbs in (1, 4)
        for recompute in ("none", "full")
    ]


def score(table: LayoutTable, factors: Factors) -> Estimates:
    """Forward 1 s, 2 s backward; full recomputation 1 s more; 0.2 s per further tensor rank, a bubble of 1 s at pp 2.

    40 GiB of weights over tp·pp, 6 GiB of activations a sequence (1 with recomputation), 1 GiB outside.
    """
    compute, far, memory = factors.compute_time, factors.communication_time, factors.memory
    again = (table.recompute == 2) * 1.0
    ones = np.ones(len(table))
    zeros = np.zeros(len(table))
    times = dict.fromkeys((f.name for f in fields(TimeEstimate)), zeros) | {
        "forward_s": compute * ones,
        "backward_s": compute * 2 * ones - compute * 0.1 * (table.micro_batch_size > 1),
        "recompute_s": compute * again,
        "tensor_parallel_s": far * 0.2 * (table.tp - 1),
        "pipeline_bubble_s": compute * 1.0 * (table.pp - 1),
        "overhead_s": factors.overhead_s * ones,
    }
    sizes = dict.fromkeys((f.name for f in fields(MemoryEstimate)), zeros) | {
        "weights_bytes": memory * 40 * GIB / (table.tp * table.pp),
        "activations_bytes": memory * table.micro_batch_size * (6.0 - 5.0 * again) * GIB,
        "outside_bytes": GIB * ones,
    }
    return Estimates(
        memory=MemoryEstimate(**sizes),
        time=TimeEstimate(**times),
        fullest_stage=np.zeros(len(table), dtype=np.int64),
        host_bytes=zeros,
    )


def verdicts(estimates: Estimates) -> VerdictColumn:
    return np.where(estimates.memory.peak_bytes > LIMIT_BYTES, DOES_NOT_FIT, FITS).astype(np.int8)


def candidates(*, time_counts: bool = True, table: LayoutTable | None = None) -> Candidates:
    return Candidates(
        table=table or LayoutTable.of(layouts()),
        score=score,
        verdicts=verdicts,
        limit_bytes=LIMIT_BYTES,
        time_counts=time_counts,
    )


def measured(step_time_s: float, peak_bytes: float = 10.0 * GIB) -> Measured:
    return Measured(
        warmup_step_times_s=(step_time_s,),
        step_times_s=(step_time_s,) * 3,
        losses=(2.0, 1.9),
        gradient_norms=(1.0, 1.0),
        ranks=(RankReport(rank=0, parameters=10, allocated_bytes=int(peak_bytes)),),
        parameters=10,
        fingerprint={"torch": "test"},
    )


class Machine:
    """Runs trials as the cost model would with the true factors; what the truth does not let fit dies of memory.

    scatter: relative errors of the runs, in turn. ran: keys of what ran, in order.
    """

    def __init__(self, truth: Factors | None = None, scatter: tuple[float, ...] = (0.0,)) -> None:
        self.truth = truth or Factors()
        self.scatter = scatter
        self.ran: list[str] = []
        self.numbers: list[int] = []

    def run(self, number: int, layout: Layout) -> TrialResult:
        estimates = score(LayoutTable.of([layout]), self.truth)
        error = self.scatter[len(self.ran) % len(self.scatter)]
        self.ran.append(layout.key)
        self.numbers.append(number)
        if estimates.memory.peak_bytes[0] > LIMIT_BYTES:
            return Failed(status=Status.OOM, evidence="rank-0: tried to allocate 2.0 GiB")
        inside_bytes = estimates.memory.peak_bytes[0] - estimates.memory.outside_bytes[0]
        return measured(float(estimates.time.step_s[0]) * (1 + error), float(inside_bytes))


def fastest_that_fits(truth: Factors) -> str:
    """By trying all."""
    table = LayoutTable.of(layouts())
    estimates = score(table, truth)
    step_s = np.where(estimates.memory.peak_bytes > LIMIT_BYTES, np.inf, estimates.time.step_s)
    return table.layout(int(np.argmin(step_s))).key
