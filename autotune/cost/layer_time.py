"""Seconds that one layer computes for one micro-batch on one rank, without communication."""

from dataclasses import dataclass

import numpy as np

from autotune.cost.activations import logits_bytes
from autotune.cost.flops import mean_keys
from autotune.cost.kernels import FLASH_BACKWARD_PRODUCTS, Passes, Rates, linear, memory_bound
from autotune.cost.parameters import LayerKind, padded_vocabulary
from autotune.cost.precision import FP32_BYTES
from autotune.cost.profile import MemoryProfile
from autotune.cost.tensors import Tokens, Widths, element_bytes, expert_width, mlp_width, tokens, widths
from autotune.spec.layout import FloatColumn, LayoutTable, code_of
from autotune.spec.model import ModelSpec
from autotune.spec.workload import Problem


@dataclass(frozen=True, kw_only=True)
class LayerTime:
    """Seconds of one layer and micro-batch. attention_*: the attention kernel's share of forward and input gradient."""

    forward_s: FloatColumn
    input_gradient_s: FloatColumn
    weight_gradient_s: FloatColumn
    recompute_s: FloatColumn
    attention_forward_s: FloatColumn
    attention_backward_s: FloatColumn


def layer_time(table: LayoutTable, problem: Problem, profile: MemoryProfile, rate: Rates, kind: LayerKind) -> LayerTime:
    """One layer of that kind."""
    model, size = problem.model, element_bytes(problem)
    count = tokens(table, problem)
    norms = memory_bound(rate, 2 * size * model.hidden_size * count.stored * model.norms_per_layer, kernels=2)
    attention = _attention_kernel(table, problem, rate, count, size)
    activation = _activation_function(table, model, profile, rate, count, kind, size)
    rest = _projections(table, model, rate, count, size) + _residual_and_rotary(table, model, rate, count, size)
    rest = rest + _mlp(table, model, rate, count, kind, size)
    whole = norms + attention + activation + rest

    again = np.zeros(len(table))
    chosen = profile.selective_recompute
    unfused = problem.workload.attention == "unfused"
    if "core_attention" in chosen or ("attention_scores" in chosen and unfused):
        again = again + attention.forward_s
    if "norms" in chosen:
        again = again + norms.forward_s
    if "activation_function" in chosen:
        again = again + activation.forward_s
    full, selective = code_of("recompute", "full"), code_of("recompute", "selective")
    recompute = np.select([table.recompute == full, table.recompute == selective], [whole.forward_s, again], 0.0)
    return LayerTime(
        forward_s=whole.forward_s,
        input_gradient_s=whole.input_gradient_s,
        weight_gradient_s=whole.weight_gradient_s,
        recompute_s=recompute,
        attention_forward_s=attention.forward_s,
        attention_backward_s=attention.input_gradient_s,
    )


def head_time(table: LayoutTable, problem: Problem, profile: MemoryProfile, rate: Rates) -> FloatColumn:
    """Forward and backward of head and loss for one micro-batch, where the rank has the head.

    The loss reads and writes each byte of the logits once.
    """
    count = tokens(table, problem)
    vocabulary = padded_vocabulary(problem.model, table.tp, profile.vocab_multiple) / table.tp
    product = linear(
        rate, rows=count.all, inputs=np.full(len(table), float(problem.model.hidden_size)), outputs=vocabulary,
        size=element_bytes(problem),
    )  # fmt: skip
    loss = 2 * logits_bytes(table, problem, profile) / rate.memory_bytes_per_s
    return product.forward_s + product.input_gradient_s + product.weight_gradient_s + loss


def _attention_kernel(table: LayoutTable, problem: Problem, rate: Rates, count: Tokens, size: int) -> Passes:
    """Scores and their product with the values.

        2 * heads * (d_key + d_value) * keys        operations per token, forward

    A fused kernel skips what causality masks and runs 2.5 times as long backward; an unfused one computes all keys,
    twice as long backward, and moves the scores four times (mask and scale, softmax; read and write). Under context
    parallelism it runs once for each rank's block of keys, see `_merging`.
    """
    model, sequence = problem.model, problem.workload.sequence_length
    width = widths(table, model)
    heads_width = width.query + width.heads * (width.output / width.heads)
    none = np.zeros(len(table))
    if problem.workload.attention == "flash":
        flops = 2 * heads_width * _keys_of_mean_layer(model, sequence) * count.all
        forward = flops / rate.attention_forward_flops_per_s
        backward = FLASH_BACKWARD_PRODUCTS * flops / rate.attention_backward_flops_per_s
        return Passes(
            forward_s=np.maximum(forward, table.cp * rate.launch_s),
            input_gradient_s=np.maximum(backward, table.cp * rate.launch_s),
            weight_gradient_s=none,
        ) + _merging(table, rate, width, count)
    flops = 2 * heads_width * sequence * count.all
    products = Passes(
        forward_s=np.maximum(flops / rate.attention_forward_flops_per_s, 2 * rate.launch_s),
        input_gradient_s=np.maximum(2 * flops / rate.attention_backward_flops_per_s, 4 * rate.launch_s),
        weight_gradient_s=none,
    )
    moved = memory_bound(rate, 4 * size * width.heads * sequence * count.all, kernels=2)
    return products + moved + _merging(table, rate, width, count)


def _merging(table: LayoutTable, rate: Rates, width: Widths, count: Tokens) -> Passes:
    """Each of the cp-1 further blocks of keys is merged into the output, read and written in fp32; likewise the query's
    gradient on the way back (Liu et al. 2023, 2310.01889, section 3).
    """
    moved = (table.cp - 1) * 2 * FP32_BYTES * width.output * count.all / rate.memory_bytes_per_s
    return Passes(forward_s=moved, input_gradient_s=moved, weight_gradient_s=np.zeros(len(table)))


def _keys_of_mean_layer(model: ModelSpec, sequence_length: int) -> float:
    """Keys that a query sees, the mean over windowed and full layers."""
    share = model.sliding_window_layers / model.num_hidden_layers
    windowed = share * mean_keys(sequence_length, model.sliding_window) if share else 0.0
    return windowed + (1 - share) * mean_keys(sequence_length)


def _projections(table: LayoutTable, model: ModelSpec, rate: Rates, count: Tokens, size: int) -> Passes:
    """Query, key, value and output projections; with latent attention also the two compressions."""
    width = widths(table, model)
    hidden = np.full(len(table), float(model.hidden_size))
    out = linear(rate, rows=count.all, inputs=width.output, outputs=hidden, size=size)
    if model.mla is None:
        qkv = width.query + width.key + width.value
        return out + linear(rate, rows=count.all, inputs=hidden, outputs=qkv, size=size)
    mla = model.mla
    rank = np.full(len(table), float(mla.kv_lora_rank))
    expanded = width.heads * (mla.qk_nope_head_dim + mla.v_head_dim)
    out += linear(rate, rows=count.stored, inputs=hidden, outputs=rank + mla.qk_rope_head_dim, size=size)
    out += linear(rate, rows=count.all, inputs=rank, outputs=expanded, size=size)
    if mla.q_lora_rank is None:
        return out + linear(rate, rows=count.all, inputs=hidden, outputs=width.query, size=size)
    rank = np.full(len(table), float(mla.q_lora_rank))
    out += linear(rate, rows=count.stored, inputs=hidden, outputs=rank, size=size)
    return out + linear(rate, rows=count.all, inputs=rank, outputs=width.query, size=size)


def _mlp(table: LayoutTable, model: ModelSpec, rate: Rates, count: Tokens, kind: LayerKind, size: int) -> Passes:
    """Products of the plain or shared MLP, and of router and routed experts with their permutation."""
    hidden = np.full(len(table), float(model.hidden_size))
    up = 2 if model.gated_mlp else 1
    width = mlp_width(table, model, kind)
    passes = _nothing(table)
    if kind is LayerKind.DENSE or (model.moe is not None and model.moe.shared_intermediate_size):
        passes += linear(rate, rows=count.all, inputs=hidden, outputs=up * width, size=size)
        passes += linear(rate, rows=count.all, inputs=width, outputs=hidden, size=size)
    if kind is LayerKind.DENSE or model.moe is None:
        return passes
    width, experts = expert_width(table, model), model.moe.num_experts
    matrices = experts / table.ep
    router = np.full(len(table), float(experts))
    passes += linear(rate, rows=count.stored, inputs=hidden, outputs=router, size=size)
    passes += memory_bound(rate, 4 * FP32_BYTES * experts * count.stored, kernels=2)
    passes += linear(rate, rows=count.routed, inputs=hidden, outputs=up * width, size=size, matrices=matrices)
    passes += linear(rate, rows=count.routed, inputs=width, outputs=hidden, size=size, matrices=matrices)
    return passes + memory_bound(rate, 4 * size * model.hidden_size * count.routed, kernels=2)


def _activation_function(
    table: LayoutTable, model: ModelSpec, profile: MemoryProfile, rate: Rates, count: Tokens, kind: LayerKind, size: int
) -> Passes:
    """Activation function and, in a gated MLP, its product with the other half: 3 tensors moved fused, 5 unfused."""
    inner = mlp_width(table, model, kind) * count.all
    if kind is LayerKind.MIXTURE:
        inner = inner + expert_width(table, model) * count.routed
    if not model.gated_mlp:
        return memory_bound(rate, 2 * size * inner)
    moved, kernels = (3, 1) if profile.fused_activation_function else (5, 2)
    return memory_bound(rate, moved * size * inner, kernels=kernels)


def _residual_and_rotary(table: LayoutTable, model: ModelSpec, rate: Rates, count: Tokens, size: int) -> Passes:
    """Two residual additions (two tensors read, one written) and the rotation of query and key (one each way)."""
    additions = memory_bound(rate, 2 * 3 * size * model.hidden_size * count.stored, kernels=2)
    if model.learned_positions:
        return additions
    width: Widths = widths(table, model)
    return additions + memory_bound(rate, 2 * size * (width.query + width.key) * count.all, kernels=2)


def _nothing(table: LayoutTable) -> Passes:
    none = np.zeros(len(table))
    return Passes(forward_s=none, input_gradient_s=none, weight_gradient_s=none)
