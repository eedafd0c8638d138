"""What the cost model says of a table of layouts: named byte columns, named second columns; totals are their sums."""

from dataclasses import dataclass, fields

import numpy as np

from autotune.spec.layout import BoolColumn, FloatColumn, IntColumn


@dataclass(frozen=True, kw_only=True)
class MemoryEstimate:
    """Bytes per GPU on the fullest pipeline stage. The parts add up to `peak_bytes`.

    outside_bytes lives outside the framework's allocator (CUDA context, NCCL, workspaces).
    """

    weights_bytes: FloatColumn
    gradients_bytes: FloatColumn
    optimizer_bytes: FloatColumn
    gathered_weights_bytes: FloatColumn
    activations_bytes: FloatColumn
    recompute_bytes: FloatColumn
    logits_bytes: FloatColumn
    buffers_bytes: FloatColumn
    outside_bytes: FloatColumn

    @property
    def parts(self) -> dict[str, FloatColumn]:
        """The columns by name, without the unit: {"weights": …}."""
        return _parts(self, "_bytes")

    @property
    def peak_bytes(self) -> FloatColumn:
        """The sum of the parts."""
        return _total(self.parts)


@dataclass(frozen=True, kw_only=True)
class TimeEstimate:
    """Seconds of one optimizer step that each part exposes (hidden communication is not in it)."""

    forward_s: FloatColumn
    backward_s: FloatColumn
    recompute_s: FloatColumn
    logits_s: FloatColumn
    tensor_parallel_s: FloatColumn
    context_parallel_s: FloatColumn
    expert_parallel_s: FloatColumn
    pipeline_bubble_s: FloatColumn
    pipeline_transfer_s: FloatColumn
    data_parallel_s: FloatColumn
    optimizer_s: FloatColumn
    overhead_s: FloatColumn

    @property
    def parts(self) -> dict[str, FloatColumn]:
        """The columns by name, without the unit: {"forward": …}."""
        return _parts(self, "_s")

    @property
    def step_s(self) -> FloatColumn:
        """The sum of the parts."""
        return _total(self.parts)


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """Both estimates of the same rows, and what depends on them.

    fullest_stage: index of the pipeline stage (rank) that `memory` describes; host_bytes: RAM that one node needs.
    """

    memory: MemoryEstimate
    time: TimeEstimate
    fullest_stage: IntColumn
    host_bytes: FloatColumn

    def __len__(self) -> int:
        return len(self.fullest_stage)

    def take(self, rows: IntColumn | BoolColumn | slice) -> "Estimates":
        """The rows that a mask, an index column or a slice picks."""
        return Estimates(
            memory=MemoryEstimate(**{f.name: getattr(self.memory, f.name)[rows] for f in fields(self.memory)}),
            time=TimeEstimate(**{f.name: getattr(self.time, f.name)[rows] for f in fields(self.time)}),
            fullest_stage=self.fullest_stage[rows],
            host_bytes=self.host_bytes[rows],
        )


def _parts(estimate: MemoryEstimate | TimeEstimate, unit: str) -> dict[str, FloatColumn]:
    return {f.name.removesuffix(unit): getattr(estimate, f.name) for f in fields(estimate)}


def _total(parts: dict[str, FloatColumn]) -> FloatColumn:
    columns = list(parts.values())
    total = np.array(columns[0])
    for column in columns[1:]:
        total += column
    return total
