"""MemoryProfile and Factors: what the cost model is told about an engine, and what measurements have taught it."""

from dataclasses import dataclass

from autotune.spec.figure import Figure


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryProfile:
    """An engine's memory habits, as data.

    master_weights: a sharded fp32 master copy is kept besides the compute weights; when false the only copy is the
    `weight_bytes_per_param` one and lower-precision copies exist only while gathered.
    state_shards_over_cp: zero_stage shards over dp_shard * cp, not over dp_shard alone.
    experts_shard_over_replicas: dp_replicate may be folded into the data-parallel ranks of the experts.
    gathered_layers: layers whose weights are gathered at once under zero_stage 3 (this one and the prefetched).
    logits_bytes_per_element: live bytes per element of the logits at the peak of the loss, copies and upcast included.
    gradient_bucket_bytes: size of a reduction bucket held besides the gradients.
    outside_bytes: CUDA context, NCCL, workspaces; outside_per_peer_bytes: more for each rank of a communication group.
    allocator_slack: share of the framework's bytes that the allocator holds on top.
    upper_bound: the upper bound of the peak is the point times this, until residuals replace it.
    """

    master_weights: bool
    weight_bytes_per_param: float | None = None
    state_shards_over_cp: bool = True
    experts_shard_over_replicas: bool = False
    gathered_layers: int = 2
    logits_bytes_per_element: Figure
    gradient_bucket_bytes: Figure
    outside_bytes: Figure
    outside_per_peer_bytes: Figure
    allocator_slack: Figure
    upper_bound: Figure


@dataclass(frozen=True, kw_only=True, slots=True)
class Factors:
    """What measured runs say the parts must be multiplied by; 1.0 is "as the formulas have it"."""

    compute_time: float = 1.0
    communication_time: float = 1.0
    overhead_s: float = 0.0
    memory: float = 1.0
    fitted_to: int = 0
