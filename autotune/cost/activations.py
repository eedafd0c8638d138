"""Activation bytes of one layer and one micro-batch, counted operation by operation.

Counted is what autograd keeps for the backward pass of a pre-norm transformer layer without dropout. s·b/cp tokens are
on a rank; what stands between tensor-parallel parts is whole on each tensor rank, or divided under sequence parallelism
(Korthikanti et al. 2022, 2205.05198, section 4).
"""

from dataclasses import dataclass

import numpy as np

from autotune.cost.parameters import LayerKind, padded_vocabulary
from autotune.cost.precision import FP32_BYTES
from autotune.cost.profile import MemoryProfile, Recomputable
from autotune.cost.tensors import Tokens, element_bytes, expert_width, mlp_width, tokens, widths
from autotune.spec.layout import FloatColumn, LayoutTable, code_of
from autotune.spec.model import ModelSpec
from autotune.spec.workload import Problem


@dataclass(frozen=True, kw_only=True)
class SavedTensors:
    """Bytes that one layer keeps for its backward pass, by the operation whose backward needs them.

    boundary: the layer's input, kept whatever is recomputed; norm_inputs: of the later norms; norm_outputs: inputs of
    the projections behind them; attention_inputs: query, key, value; attention_scores: softmax output of an unfused
    kernel, log-sum-exp of a fused one; attention_output; mlp_projected: outputs of the up projection(s);
    mlp_activated: what the activation function and the product behind it make of them; routing: router scores and
    token copies sent to the experts.
    """

    boundary: FloatColumn
    norm_inputs: FloatColumn
    norm_outputs: FloatColumn
    attention_inputs: FloatColumn
    attention_scores: FloatColumn
    attention_output: FloatColumn
    mlp_projected: FloatColumn
    mlp_activated: FloatColumn
    routing: FloatColumn

    @property
    def all_bytes(self) -> FloatColumn:
        """Without recomputation."""
        kept = self.boundary + self.norm_inputs + self.norm_outputs + self.attention_inputs + self.attention_scores
        return kept + self.attention_output + self.mlp_projected + self.mlp_activated + self.routing


@dataclass(frozen=True, kw_only=True)
class LayerActivations:
    """Bytes of one layer. stored: for each micro-batch in flight; rebuilt: what recomputation brings back for the one
    layer whose backward runs; working: gradients that exist only while that backward runs.
    """

    stored_bytes: FloatColumn
    rebuilt_bytes: FloatColumn
    working_bytes: FloatColumn


def layer_activations(
    table: LayoutTable, problem: Problem, profile: MemoryProfile, kind: LayerKind
) -> LayerActivations:
    """Activations of one layer of that kind under each row's recompute setting."""
    saved = saved_tensors(table, problem, profile, kind)
    every = saved.all_bytes
    dropped = _dropped(saved, problem, profile.selective_recompute)
    stored = np.select(
        [table.recompute == code_of("recompute", "full"), table.recompute == code_of("recompute", "selective")],
        [saved.boundary, every - dropped],
        every,
    )
    # The gradients of the MLP's inner tensors are the largest that the backward of one layer holds at a time.
    working = saved.mlp_projected + saved.boundary
    return LayerActivations(stored_bytes=stored, rebuilt_bytes=every - stored, working_bytes=working)


def saved_tensors(table: LayoutTable, problem: Problem, profile: MemoryProfile, kind: LayerKind) -> SavedTensors:
    """What one layer of that kind keeps."""
    model, size = problem.model, element_bytes(problem)
    count = tokens(table, problem)
    hidden = size * model.hidden_size * count.stored
    projected, activated = _mlp_bytes(table, model, count, kind, size, fused=profile.fused_activation_function)
    attention_inputs, attention_output = _attention_bytes(table, model, count, size)
    # Norms behind attention and MLP (Gemma-2 has both) keep their inputs only: nothing multiplies their outputs.
    leading_norms = min(model.norms_per_layer, 2)
    return SavedTensors(
        boundary=hidden,
        norm_inputs=hidden * max(model.norms_per_layer - 1, 0),
        norm_outputs=hidden * leading_norms,
        attention_inputs=attention_inputs,
        attention_scores=_score_bytes(table, problem, count, size),
        attention_output=attention_output,
        mlp_projected=projected,
        mlp_activated=activated,
        routing=_routing_bytes(model, count, kind, size),
    )


def logits_bytes(table: LayoutTable, problem: Problem, profile: MemoryProfile) -> FloatColumn:
    """Logits, their copies and their gradient at the peak of the loss, on the rank that holds the head."""
    vocabulary = padded_vocabulary(problem.model, table.tp, profile.vocab_multiple).astype(np.float64)
    if profile.vocab_parallel_logits:
        vocabulary = vocabulary / table.tp
    return profile.logits_bytes_per_element.value * tokens(table, problem).all * vocabulary


def _attention_bytes(table: LayoutTable, model: ModelSpec, count: Tokens, size: int) -> tuple[FloatColumn, FloatColumn]:
    """(inputs of the attention kernel and of what stands before it, its output)."""
    width = widths(table, model)
    inputs = width.query + width.key + width.value
    if model.qk_norm:
        inputs = inputs + width.query + width.key
    whole = 0.0
    if model.mla is not None:
        # Compressed query and key/value, before and after their norms, the same on every tensor rank.
        compressed = 2 * model.mla.kv_lora_rank + 2 * (model.mla.q_lora_rank or 0)
        whole = float(compressed + model.mla.qk_rope_head_dim)
    return size * (inputs * count.all + whole * count.stored), size * width.output * count.all


def _score_bytes(table: LayoutTable, problem: Problem, count: Tokens, size: int) -> FloatColumn:
    """Softmax output, heads x own queries x all keys; a fused kernel keeps one fp32 number for each query and head."""
    heads = widths(table, problem.model).heads
    if problem.workload.attention == "flash":
        return FP32_BYTES * heads * count.all
    return size * heads * count.all * problem.workload.sequence_length


def _mlp_bytes(
    table: LayoutTable, model: ModelSpec, count: Tokens, kind: LayerKind, size: int, *, fused: bool
) -> tuple[FloatColumn, FloatColumn]:
    """(outputs of the up projections, what the activation function makes of them) of plain, shared and routed MLPs."""
    inner = mlp_width(table, model, kind) * count.all
    if kind is LayerKind.MIXTURE:
        inner = inner + expert_width(table, model) * count.routed
    up = 2 if model.gated_mlp else 1
    activated = 2 if model.gated_mlp and not fused else 1
    return up * size * inner, activated * size * inner


def _routing_bytes(model: ModelSpec, count: Tokens, kind: LayerKind, size: int) -> FloatColumn:
    """Router logits and probabilities in fp32, and the token copies that enter the experts."""
    if kind is LayerKind.DENSE or model.moe is None:
        return np.zeros_like(count.all)
    scores = 2 * FP32_BYTES * model.moe.num_experts * count.stored
    return scores + size * model.hidden_size * count.routed


def _dropped(saved: SavedTensors, problem: Problem, recomputed: tuple[Recomputable, ...]) -> FloatColumn:
    """Bytes of a layer that selective recomputation does not keep."""
    dropped = np.zeros_like(saved.boundary)
    unfused = problem.workload.attention == "unfused"
    if "core_attention" in recomputed or ("attention_scores" in recomputed and unfused):
        dropped = dropped + saved.attention_scores
    if "norms" in recomputed:
        dropped = dropped + saved.norm_outputs
    if "activation_function" in recomputed:
        dropped = dropped + saved.mlp_activated
    return dropped
