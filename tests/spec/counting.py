"""Parameters of a model, counted matrix by matrix: an independent check of what was read from a config.json."""

from autotune.spec.model import ModelSpec


def count_parameters(model: ModelSpec) -> int:
    """All parameters without multi-token prediction, as model cards count them."""
    h, layers = model.hidden_size, model.num_hidden_layers
    norm = h * (2 if model.norm_bias else 1)
    mixtures = 0
    if model.moe is not None:
        mixtures = (layers - model.moe.dense_layers) // model.moe.moe_layer_frequency
    total = model.vocab_size * h * (1 if model.tied_embeddings else 2) + model.learned_positions * h + norm
    total += layers * (_attention(model) + model.norms_per_layer * norm)
    total += (layers - mixtures) * _mlp(model, model.intermediate_size)
    if model.moe is not None:
        total += mixtures * _mixture(model)
    return total


def _attention(model: ModelSpec) -> int:
    h, heads = model.hidden_size, model.num_attention_heads
    if model.mla is not None:
        mla = model.mla
        q, kv = mla.q_lora_rank, mla.kv_lora_rank
        query = heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim)
        down = h * (kv + mla.qk_rope_head_dim) + kv
        up = kv * heads * (mla.qk_nope_head_dim + mla.v_head_dim)
        return (h * query if q is None else h * q + q + q * query) + down + up + heads * mla.v_head_dim * h
    width, kv_width = heads * model.head_dim, model.num_key_value_heads * model.head_dim
    total = 2 * h * width + 2 * h * kv_width
    total += (width + 2 * kv_width if model.qkv_bias else 0) + (h if model.attention_output_bias else 0)
    total += heads if model.attention_sinks else 0
    if model.qk_norm:
        total += width + kv_width if model.qk_norm_over_heads else 2 * model.head_dim
    return total


def _mlp(model: ModelSpec, width: int) -> int:
    up = 2 if model.gated_mlp else 1
    bias = up * width + model.hidden_size if model.mlp_bias else 0
    return (up + 1) * model.hidden_size * width + bias


def _mixture(model: ModelSpec) -> int:
    moe, h = model.moe, model.hidden_size
    assert moe is not None
    router = moe.num_experts * (h + 1 if moe.router_bias else h) + (h if moe.shared_expert_gate else 0)
    shared = _mlp(model, moe.shared_intermediate_size) if moe.shared_intermediate_size else 0
    return router + shared + moe.num_experts * _mlp(model, moe.expert_intermediate_size)
