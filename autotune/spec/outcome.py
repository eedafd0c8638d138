"""TrialSpec, Measured, Failed: what a trial is asked and what it answers. `trial.json` and `result.json` are these."""

from dataclasses import dataclass, field
from enum import StrEnum

from autotune.spec.cluster import Device
from autotune.spec.layout import Layout
from autotune.spec.model import ModelSpec
from autotune.spec.workload import WorkloadSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialSpec:
    """One short real run.

    steps are optimizer steps: the worker warms up until step times are stable (at least min_warmup_steps, at most
    max_warmup_steps), then measures measured_steps. nodes * processes_per_node processes take part. memory_limit_bytes:
    what one process may hold; the worker enforces it, None leaves it to the device.
    """

    layout: Layout
    model: ModelSpec
    workload: WorkloadSpec
    device: Device
    nodes: int = 1
    processes_per_node: int
    seed: int = 0
    learning_rate: float = 1e-3
    min_warmup_steps: int = 2
    max_warmup_steps: int = 5
    measured_steps: int = 3
    memory_limit_bytes: int | None = None

    @property
    def world_size(self) -> int:
        """Processes in all."""
        return self.nodes * self.processes_per_node


@dataclass(frozen=True, kw_only=True, slots=True)
class RankReport:
    """What one rank saw. CUDA fills allocated and reserved, the CPU tensor and resident bytes; None: not measured.

    parameters: parameters of the shards this rank owns (replicas own their copy).
    """

    rank: int
    parameters: int
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    tensor_bytes: int | None = None
    resident_bytes: int | None = None

    @property
    def peak_bytes(self) -> int:
        """The figure to compare with a prediction: what the framework held, without what lives outside it."""
        return self.allocated_bytes or self.tensor_bytes or self.resident_bytes or 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """A trial that ran. Step times are raw wall-clock seconds of whole optimizer steps, the slowest rank's.

    losses and gradient_norms: one per step from the first warm-up step on; parameters: of the whole model, counted from
    the ranks without copies; fingerprint: software and hardware, by name.
    """

    warmup_step_times_s: tuple[float, ...]
    step_times_s: tuple[float, ...]
    losses: tuple[float, ...]
    gradient_norms: tuple[float, ...]
    ranks: tuple[RankReport, ...]
    parameters: int
    fingerprint: dict[str, str] = field(default_factory=dict)

    @property
    def step_time_s(self) -> float:
        """The median step."""
        ordered = sorted(self.step_times_s)
        middle = len(ordered) // 2
        return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2

    @property
    def spread_s(self) -> float:
        """Slowest minus fastest measured step."""
        return max(self.step_times_s) - min(self.step_times_s)

    @property
    def peak_memory_bytes(self) -> int:
        """The fullest rank."""
        return max(rank.peak_bytes for rank in self.ranks)


class Status(StrEnum):
    """How a trial failed. REFUSED: it gave a result that cannot be true or is not of what was asked."""

    OOM = "out-of-memory"
    TIMEOUT = "timeout"
    CRASH = "crash"
    GARBAGE = "unreadable-result"
    NO_RESULT = "no-result"
    INVALID = "invalid"
    LAUNCH = "launch"
    INTERRUPTED = "interrupted"
    REFUSED = "refused-result"


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """A trial that ended badly. evidence: one line that shows it, e.g. "rank-3: tried to allocate 2.0 GiB"."""

    status: Status
    evidence: str


TrialResult = Measured | Failed
