"""MemoryProfile and Factors: what the cost model is told about an engine, and what measurements have taught it."""

from dataclasses import dataclass
from typing import Literal

from autotune.spec.figure import Figure

Recomputable = Literal["attention_scores", "core_attention", "norms", "activation_function"]
"""What selective recomputation may compute again: the scores of an unfused attention; the whole attention kernel, fused
or not; the outputs of norms; the MLP's activation function and the product behind it."""


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
    outside_bytes: CUDA context, NCCL, workspaces; outside_per_peer_bytes: more for each peer a rank keeps a connection
    to: two in the ring of each communication group, all the others of an expert all-to-all.
    allocator_slack: share of the framework's bytes that the allocator holds on top.
    upper_bound: the upper bound of the peak is the point times this, until residuals replace it.
    vocab_multiple: the vocabulary is padded to a multiple of this times tp.
    vocab_parallel_logits: each tensor rank holds the logits of its own part of the vocabulary only.
    fused_activation_function: a gated MLP saves gate, up and their product; when false also the activated gate.
    selective_recompute: what recompute "selective" computes again.
    gradients_as_weights: gradients are kept in the dtype of the weight that stays; gradient_dtype only reduces them.
    pipeline_accumulates_gradients: with pp > 1 zero_stage shards gradients only after the last micro-batch of a step.
    split_backward_keeps_gathered: under zero_stage 3 a schedule that splits the backward pass keeps the weights of the
    whole stage gathered.
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
    vocab_multiple: int = 128
    vocab_parallel_logits: bool = True
    fused_activation_function: bool = False
    selective_recompute: tuple[Recomputable, ...] = ("attention_scores", "norms", "activation_function")
    gradients_as_weights: bool = False
    pipeline_accumulates_gradients: bool = False
    split_backward_keeps_gathered: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Factors:
    """What measured runs say the parts must be multiplied by; 1.0 is "as the formulas have it"."""

    compute_time: float = 1.0
    communication_time: float = 1.0
    overhead_s: float = 0.0
    memory: float = 1.0
    fitted_to: int = 0
