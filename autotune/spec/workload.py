"""WorkloadSpec: what is trained, apart from the network. Problem: model, cluster and workload together."""

from dataclasses import dataclass
from typing import Literal

from autotune.spec.cluster import ClusterSpec
from autotune.spec.model import ModelSpec

Precision = Literal["bf16", "fp16", "fp32", "fp8"]
Optimizer = Literal["adamw", "sgd"]
GradientDtype = Literal["fp32", "bf16"]
Attention = Literal["flash", "unfused"]

OPTIMIZER_STATES: dict[Optimizer, int] = {"adamw": 2, "sgd": 0}
"""fp32 values that the optimizer keeps per parameter besides the weight."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkloadSpec:
    """sequence_length in tokens; global_batch_size in sequences per optimizer step, never changed by a layout."""

    sequence_length: int
    global_batch_size: int
    precision: Precision = "bf16"
    optimizer: Optimizer = "adamw"
    gradient_dtype: GradientDtype = "fp32"
    attention: Attention = "flash"

    @property
    def tokens_per_step(self) -> int:
        """Tokens of one optimizer step."""
        return self.sequence_length * self.global_batch_size


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """The question: this network, on these machines, with this batch."""

    model: ModelSpec
    cluster: ClusterSpec
    workload: WorkloadSpec
