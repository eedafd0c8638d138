"""Exact parameter counts of a model, in all and by what divides them among ranks."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from autotune.spec.layout import FloatColumn, IntColumn, LayoutTable
from autotune.spec.model import ModelSpec, MoeSpec


class LayerKind(StrEnum):
    """What stands behind the attention of a layer."""

    DENSE = "dense"  # one MLP
    MIXTURE = "mixture"  # routed experts


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerParameters:
    """Parameters of one layer by what divides them.

    sharded: by tp; key_value: by tp, but a rank holds at least one key/value head; replicated: by nothing (norms, the
    router, MLA's down projections, biases behind a row-parallel product); routed: the experts, by ep * etp.
    """

    sharded: int
    key_value: int
    replicated: int
    routed: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.sharded + self.key_value + self.replicated + self.routed


def layer_kinds(model: ModelSpec) -> tuple[LayerKind, ...]:
    """The kinds of layer that the model has, leading kind first."""
    counts = {LayerKind.DENSE: dense_layers(model), LayerKind.MIXTURE: mixture_layers(model)}
    return tuple(kind for kind, count in counts.items() if count > 0)


def mixture_layers(model: ModelSpec) -> int:
    """Layers with routed experts: behind the dense ones, every `moe_layer_frequency`-th."""
    if model.moe is None:
        return 0
    return (model.num_hidden_layers - model.moe.dense_layers) // model.moe.moe_layer_frequency


def dense_layers(model: ModelSpec) -> int:
    """Layers with one MLP."""
    return model.num_hidden_layers - mixture_layers(model)


def layer_parameters(model: ModelSpec, kind: LayerKind) -> LayerParameters:
    """Parameters of one layer of that kind."""
    sharded, key_value, replicated = _attention(model)
    replicated += model.norms_per_layer * norm_parameters(model, model.hidden_size)
    routed = 0
    if kind is LayerKind.DENSE or model.moe is None:
        width = model.intermediate_size
    else:
        moe = model.moe
        width = moe.shared_intermediate_size
        routed = moe.num_experts * expert_parameters(model, moe)
        replicated += moe.num_experts * (model.hidden_size + moe.router_bias)
        replicated += model.hidden_size * moe.shared_expert_gate
    if width:
        mlp_sharded, mlp_replicated = _mlp(model, width)
        sharded += mlp_sharded
        replicated += mlp_replicated
    return LayerParameters(sharded=sharded, key_value=key_value, replicated=replicated, routed=routed)


def expert_parameters(model: ModelSpec, moe: MoeSpec) -> int:
    """Parameters of one routed expert."""
    return sum(_mlp(model, moe.expert_intermediate_size))


def norm_parameters(model: ModelSpec, width: int) -> int:
    """One norm over `width` values: a scale, and a shift where the model has one."""
    return width * (2 if model.norm_bias else 1)


def embedding_parameters(model: ModelSpec) -> int:
    """The input embedding table, without positions."""
    return model.vocab_size * model.hidden_size


def beside_embedding_parameters(model: ModelSpec) -> int:
    """What stands with the embedding on the first stage: learned positions and the norm behind the embedding."""
    norm = norm_parameters(model, model.hidden_size) if model.embedding_norm else 0
    return model.learned_positions * model.hidden_size + norm


def beside_head_parameters(model: ModelSpec) -> int:
    """What stands with the head on the last stage: the final norm and the head's bias."""
    norm = norm_parameters(model, model.hidden_size) if model.final_norm else 0
    return norm + model.head_bias * model.vocab_size


def mtp_parameters(model: ModelSpec) -> int:
    """One multi-token-prediction layer without its transformer layer: a 2h x h projection and three norms.

    Embedding and head are the model's own (DeepSeek-V3 technical report, 2412.19437, section 2.2).
    """
    return 2 * model.hidden_size**2 + 3 * norm_parameters(model, model.hidden_size)


def layers_total(model: ModelSpec) -> int:
    """Parameters of all layers, without multi-token prediction."""
    return sum(
        count * layer_parameters(model, kind).total
        for kind, count in ((LayerKind.DENSE, dense_layers(model)), (LayerKind.MIXTURE, mixture_layers(model)))
        if count
    )


def total_parameters(model: ModelSpec, *, with_mtp: bool = False) -> int:
    """All parameters of the model. Multi-token prediction is left out unless asked for, as model cards do."""
    head = 0 if model.tied_embeddings else embedding_parameters(model)
    total = embedding_parameters(model) + beside_embedding_parameters(model) + layers_total(model)
    total += head + beside_head_parameters(model)
    if with_mtp:
        last = layer_parameters(model, layer_kinds(model)[-1]).total
        total += model.mtp_layers * (last + mtp_parameters(model))
    return total


def active_parameters(model: ModelSpec) -> int:
    """Parameters that one token passes: all but the routed experts that are not chosen."""
    if model.moe is None:
        return total_parameters(model)
    idle = model.moe.num_experts - model.moe.experts_per_token
    return total_parameters(model) - mixture_layers(model) * idle * expert_parameters(model, model.moe)


def padded_vocabulary(model: ModelSpec, tp: IntColumn, multiple: int) -> IntColumn:
    """Rows of the embedding as tensor parallelism stores it: rounded up to a multiple of `multiple` * tp.

    Megatron-LM's `_vocab_size_with_padding` with `--make-vocab-size-divisible-by` (128 by default).
    """
    step = multiple * tp
    return -(-model.vocab_size // step) * step


def rank_layer_parameters(table: LayoutTable, model: ModelSpec, kind: LayerKind) -> tuple[FloatColumn, FloatColumn]:
    """Parameters of one layer that one rank computes with: (all but routed experts, routed experts)."""
    layer = layer_parameters(model, kind)
    kv_ranks = np.minimum(table.tp, model.num_key_value_heads)
    own = layer.sharded / table.tp + layer.key_value / kv_ranks + layer.replicated
    return own, layer.routed / (table.ep * table.etp)


def _attention(model: ModelSpec) -> tuple[int, int, int]:
    """(sharded, key_value, replicated) of one attention block."""
    if model.mla is not None:
        return _latent_attention(model)
    h, width = model.hidden_size, model.num_attention_heads * model.head_dim
    kv_width = model.num_key_value_heads * model.head_dim
    sharded = 2 * h * width + model.qkv_bias * width + model.attention_sinks * model.num_attention_heads
    key_value = 2 * kv_width * (h + model.qkv_bias)
    replicated = model.attention_output_bias * h
    if model.qk_norm:
        spanned = (width, kv_width) if model.qk_norm_over_heads else (model.head_dim, model.head_dim)
        replicated += sum(norm_parameters(model, values) for values in spanned)
    return sharded, key_value, replicated


def _latent_attention(model: ModelSpec) -> tuple[int, int, int]:
    """Multi-head latent attention: the down projections and their norms are held whole by every tensor rank."""
    mla, h, heads = model.mla, model.hidden_size, model.num_attention_heads
    assert mla is not None
    query_width = heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim)
    sharded = mla.kv_lora_rank * heads * (mla.qk_nope_head_dim + mla.v_head_dim) + heads * mla.v_head_dim * h
    replicated = h * (mla.kv_lora_rank + mla.qk_rope_head_dim) + norm_parameters(model, mla.kv_lora_rank)
    replicated += model.attention_output_bias * h
    if mla.q_lora_rank is None:
        sharded += h * query_width
    else:
        sharded += mla.q_lora_rank * query_width
        replicated += h * mla.q_lora_rank + norm_parameters(model, mla.q_lora_rank)
    return sharded, 0, replicated


def _mlp(model: ModelSpec, width: int) -> tuple[int, int]:
    """(sharded, replicated) of a plain or gated MLP of that width."""
    up = 2 if model.gated_mlp else 1
    sharded = (up + 1) * model.hidden_size * width + model.mlp_bias * up * width
    return sharded, model.mlp_bias * model.hidden_size
