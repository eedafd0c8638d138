"""Observation: one run beside the parts that the cost model predicted for it, in the form that a fit needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from autotune.cost.estimates import Estimates
from autotune.cost.profile import Factors
from autotune.spec.outcome import Failed, Measured, RankReport, Status, TrialResult

COMPUTE_PARTS: Final = ("forward", "backward", "recompute", "logits", "optimizer", "pipeline_bubble")
COMMUNICATION_PARTS: Final = (
    "tensor_parallel", "context_parallel", "expert_parallel", "pipeline_transfer", "data_parallel",
)  # fmt: skip
OVERHEAD_PART: Final = "overhead"
OUTSIDE_PART: Final = "outside"
"""The memory part that no factor scales: it lives outside the framework, where trials do not see it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """What was predicted for a layout and what its run showed; None: not seen.

    time_parts_s, memory_parts_bytes: `TimeEstimate.parts` and `MemoryEstimate.parts` of the row; predicted_with: the
    factors in them. step_time_s: the median step. time_counts: the time says something about the target; that of more
    processes than cores does not. framework_bytes: the fullest rank, without what lives outside the framework.
    exceeded_bytes: the run died because the framework needed more than this.
    """

    time_parts_s: Mapping[str, float]
    memory_parts_bytes: Mapping[str, float]
    predicted_with: Factors = field(default_factory=Factors)
    step_time_s: float | None = None
    time_counts: bool = True
    framework_bytes: float | None = None
    exceeded_bytes: float | None = None


def observe(
    estimates: Estimates,
    row: int,
    result: TrialResult,
    *,
    predicted_with: Factors,
    limit_bytes: float,
    time_counts: bool,
) -> Observation | None:
    """The observation that a trial of this row makes; None where its failure says nothing about time or memory.

    limit_bytes: what one process was allowed to hold.
    """
    time_parts_s = {name: float(column[row]) for name, column in estimates.time.parts.items()}
    memory_parts_bytes = {name: float(column[row]) for name, column in estimates.memory.parts.items()}
    match result:
        case Measured():
            return Observation(
                time_parts_s=time_parts_s,
                memory_parts_bytes=memory_parts_bytes,
                predicted_with=predicted_with,
                step_time_s=result.step_time_s,
                time_counts=time_counts,
                framework_bytes=_framework_bytes(result.ranks),
            )
        case Failed(status=Status.OOM):
            return Observation(
                time_parts_s=time_parts_s,
                memory_parts_bytes=memory_parts_bytes,
                predicted_with=predicted_with,
                time_counts=False,
                exceeded_bytes=limit_bytes - memory_parts_bytes[OUTSIDE_PART],
            )
        case Failed():
            return None


def _framework_bytes(ranks: tuple[RankReport, ...]) -> float | None:
    """The fullest rank. The prediction has the allocator's slack in it, so reserved comes before allocated.

    Resident memory alone counts the interpreter and its libraries too: an upper bound, from which nothing is fitted.
    """
    held = [rank.reserved_bytes or rank.allocated_bytes or rank.tensor_bytes or 0 for rank in ranks]
    return float(max(held)) or None
