"""PredictedRun: a measured run beside what the cost model says of it, part by part."""

from collections.abc import Mapping
from dataclasses import dataclass

from autotune.cost.profile import Factors, MemoryProfile
from autotune.spec.measured import MeasuredRun, MemoryKind

OUTSIDE_PART = "outside"


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictedRun:
    """time_parts_s, memory_parts_bytes: of the row; fullest_stage: the pipeline rank that the memory is of.

    engine: whose habits were used; limit_bytes: what one process may use.
    """

    run: MeasuredRun
    engine: str
    profile: MemoryProfile
    factors: Factors
    time_parts_s: Mapping[str, float]
    memory_parts_bytes: Mapping[str, float]
    fullest_stage: int
    limit_bytes: float

    @property
    def step_time_s(self) -> float:
        """The predicted step."""
        return sum(self.time_parts_s.values())

    @property
    def device_bytes(self) -> float:
        """The predicted peak of the whole device."""
        return sum(self.memory_parts_bytes.values())

    @property
    def out_of_memory(self) -> bool:
        """Whether the predicted peak is more than a process may use."""
        return self.device_bytes > self.limit_bytes

    @property
    def measured_step_time_s(self) -> float | None:
        """The step time, where there is one that may be scored."""
        return self.run.step_time_s if self.run.time_counts else None

    @property
    def measured_bytes(self) -> float | None:
        """The measured peak, where it can be compared with the prediction."""
        return self.run.peak_memory_bytes if self.like_with_like_bytes is not None else None

    @property
    def like_with_like_bytes(self) -> float | None:
        """The prediction of what was measured: device memory, what the allocator holds, or the tensors in it.

        None where it is not known what was measured, or of another rank than the fullest.
        """
        run = self.run
        if run.memory_rank == "last" and self.fullest_stage != run.layout.pp - 1:
            return None
        inside = self.device_bytes - self.memory_parts_bytes[OUTSIDE_PART]
        match run.memory_kind:
            case MemoryKind.DEVICE:
                return self.device_bytes
            case MemoryKind.RESERVED:
                return inside
            case MemoryKind.ALLOCATED:
                return inside / (1 + self.profile.allocator_slack.value)
            case MemoryKind.UNKNOWN:
                return None

    @property
    def time_error(self) -> float | None:
        """Predicted over measured step time, less one."""
        measured = self.measured_step_time_s
        return None if measured is None else self.step_time_s / measured - 1

    @property
    def memory_error(self) -> float | None:
        """Predicted over measured peak, less one."""
        measured, predicted = self.measured_bytes, self.like_with_like_bytes
        return None if measured is None or predicted is None else predicted / measured - 1
