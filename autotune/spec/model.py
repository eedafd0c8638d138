"""ModelSpec: the network whose layout is sought. `huggingface.py` reads it from a config.json."""

from dataclasses import dataclass
from typing import Literal

Norm = Literal["rmsnorm", "layernorm"]
Activation = Literal["silu", "gelu", "relu"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MoeSpec:
    """The mixture of experts in a layer.

    num_experts: routed experts; experts_per_token: top-k; expert_intermediate_size: width of one routed expert;
    shared_intermediate_size: total width of the always-active expert(s), 0 for none; dense_layers: leading layers that
    have a plain MLP instead; moe_layer_frequency: after those, every n-th layer is a mixture.
    """

    num_experts: int
    experts_per_token: int
    expert_intermediate_size: int
    shared_intermediate_size: int = 0
    shared_expert_gate: bool = False
    router_bias: bool = False
    dense_layers: int = 0
    moe_layer_frequency: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class MlaSpec:
    """Multi-head latent attention (DeepSeek-V2). q_lora_rank None: the query is projected directly."""

    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSpec:
    """A decoder-only transformer.

    head_dim need not be hidden_size / num_attention_heads; norms_per_layer counts the norms over hidden_size in one
    layer (2 in Llama, 4 in Gemma-2, 1 where attention and MLP share one); qk_norm_over_heads: the norms of queries and
    keys span all heads (OLMo-2) and not one head; learned_positions: rows of a learned position table, 0 for rotary;
    mtp_layers: multi-token-prediction layers behind the last; source: where the numbers come from.
    """

    name: str
    architecture: str
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    tied_embeddings: bool = False
    gated_mlp: bool = True
    activation: Activation = "silu"
    norm: Norm = "rmsnorm"
    norms_per_layer: int = 2
    final_norm: bool = True
    qkv_bias: bool = False
    attention_output_bias: bool = False
    mlp_bias: bool = False
    norm_bias: bool = False
    head_bias: bool = False
    qk_norm: bool = False
    qk_norm_over_heads: bool = False
    attention_sinks: bool = False
    embedding_norm: bool = False
    learned_positions: int = 0
    max_position_embeddings: int = 0
    sliding_window: int = 0
    sliding_window_layers: int = 0
    moe: MoeSpec | None = None
    mla: MlaSpec | None = None
    mtp_layers: int = 0
    source: str = ""
