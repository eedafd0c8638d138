"""A question that CPU processes can answer: a model of the same kind, but small, and a small batch.

The rule, which depends on nothing but the question:

    hidden width    at most 256, halved until the model fits `max_parameters`, never below 32
    layers          at most 8, a power of two, so that 2 and 4 stages, and 2 chunks each, divide them
    heads           at most 4 key/value heads, times as many query heads each as before
    head width      in the same proportion to the hidden width, in steps of 8, at least 8
    MLP, experts    in the same proportion to the hidden width, in steps of 32 (experts: 16)
    mixture         at most 8 experts, at most 2 of them per token, at most one dense layer before
    vocabulary      at most 2048
    sequence        at most 128 tokens, a sliding window at most half of it
    global batch    at most 16 sequences

Gating, biases, norms, tying, latent attention and shared experts stay. The cluster stays. Nothing ever grows.
"""

from dataclasses import replace

from autotune.spec.model import MlaSpec, ModelSpec, MoeSpec
from autotune.spec.workload import Problem

SUFFIX = "-scaled"
MOST_HIDDEN, LEAST_HIDDEN = 256, 32
MOST_LAYERS = 8
MOST_KEY_VALUE_HEADS = 4
MOST_EXPERTS = 8
MOST_VOCABULARY = 2048
MOST_TOKENS = 128
MOST_SEQUENCES = 16


def scale_down(problem: Problem, *, max_parameters: int = 20_000_000) -> Problem:
    """The scaled question; its model's name ends in "-scaled"."""
    hidden_size = min(problem.model.hidden_size, MOST_HIDDEN)
    tokens = min(problem.workload.sequence_length, MOST_TOKENS)
    model = _scaled(problem.model, hidden_size, tokens)
    while _matrix_parameters(model) > max_parameters and hidden_size > LEAST_HIDDEN:
        hidden_size //= 2
        model = _scaled(problem.model, hidden_size, tokens)
    batch = min(problem.workload.global_batch_size, MOST_SEQUENCES)
    workload = replace(problem.workload, sequence_length=tokens, global_batch_size=batch)
    return replace(problem, model=model, workload=workload)


def _scaled(model: ModelSpec, hidden_size: int, tokens: int) -> ModelSpec:
    layers = 1 << (min(model.num_hidden_layers, MOST_LAYERS).bit_length() - 1)
    key_value_heads = min(model.num_key_value_heads, MOST_KEY_VALUE_HEADS)
    heads = key_value_heads * (model.num_attention_heads // model.num_key_value_heads)
    window = min(model.sliding_window, max(1, tokens // 2))
    return replace(
        model,
        name=model.name.removesuffix(SUFFIX) + SUFFIX,
        hidden_size=hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=key_value_heads,
        head_dim=_head_dim(model, hidden_size, heads),
        intermediate_size=_in_proportion(model, model.intermediate_size, hidden_size, step=32),
        vocab_size=min(model.vocab_size, MOST_VOCABULARY),
        learned_positions=min(model.learned_positions, tokens),
        max_position_embeddings=min(model.max_position_embeddings, tokens),
        sliding_window=window,
        sliding_window_layers=round(layers * model.sliding_window_layers / model.num_hidden_layers) if window else 0,
        moe=_scaled_mixture(model, model.moe, hidden_size, layers) if model.moe else None,
        mla=_scaled_latent(model, model.mla, hidden_size) if model.mla else None,
        mtp_layers=min(model.mtp_layers, 1),
        source=f"scaled down for a trial run from {model.source or model.name}",
    )


def _head_dim(model: ModelSpec, hidden_size: int, heads: int) -> int:
    width = hidden_size * model.num_attention_heads * model.head_dim / model.hidden_size
    return min(model.head_dim, max(8, 8 * round(width / heads / 8)))


def _scaled_mixture(model: ModelSpec, moe: MoeSpec, hidden_size: int, layers: int) -> MoeSpec:
    experts = min(moe.num_experts, MOST_EXPERTS)
    shared = moe.shared_intermediate_size
    return replace(
        moe,
        num_experts=experts,
        experts_per_token=min(moe.experts_per_token, 2, experts),
        expert_intermediate_size=_in_proportion(model, moe.expert_intermediate_size, hidden_size, step=16),
        shared_intermediate_size=_in_proportion(model, shared, hidden_size, step=16) if shared else 0,
        dense_layers=min(moe.dense_layers, 1, layers - 1),
        moe_layer_frequency=min(moe.moe_layer_frequency, layers),
    )


def _scaled_latent(model: ModelSpec, mla: MlaSpec, hidden_size: int) -> MlaSpec:
    def rank(size: int) -> int:
        return _in_proportion(model, size, hidden_size, step=16)

    return MlaSpec(
        q_lora_rank=rank(mla.q_lora_rank) if mla.q_lora_rank is not None else None,
        kv_lora_rank=rank(mla.kv_lora_rank),
        qk_nope_head_dim=min(mla.qk_nope_head_dim, 16),
        qk_rope_head_dim=min(mla.qk_rope_head_dim, 8),
        v_head_dim=min(mla.v_head_dim, 16),
    )


def _in_proportion(model: ModelSpec, size: int, hidden_size: int, *, step: int) -> int:
    """A size that belonged to the old hidden width, for the new one."""
    return min(size, max(step, step * round(size * hidden_size / model.hidden_size / step)))


def _matrix_parameters(model: ModelSpec) -> int:
    """Entries of all weight matrices, every layer counted as its widest kind: a little more than there are."""
    h = model.hidden_size
    mlp_matrices = 3 if model.gated_mlp else 2
    width = model.intermediate_size
    if model.moe is not None:
        routed = model.moe.num_experts * model.moe.expert_intermediate_size
        width = max(width, routed + model.moe.shared_intermediate_size)
    attention = 2 * h * (model.num_attention_heads + model.num_key_value_heads) * model.head_dim
    if model.mla is not None:
        head = model.mla.qk_nope_head_dim + model.mla.qk_rope_head_dim + model.mla.v_head_dim
        attention = 3 * h * model.num_attention_heads * head
    layers = model.num_hidden_layers + model.mtp_layers
    return layers * (attention + mlp_matrices * h * width) + (2 + 2 * model.mtp_layers) * model.vocab_size * h
