"""Weights, gradients and optimizer states of one rank, at the three places that can be the fullest."""

from dataclasses import dataclass

import numpy as np

from autotune.cost.parameters import (
    beside_embedding_parameters,
    beside_head_parameters,
    layer_kinds,
    mtp_parameters,
    padded_vocabulary,
    rank_layer_parameters,
)
from autotune.cost.precision import ELEMENT_BYTES, FP32_BYTES, GRADIENT_BYTES
from autotune.cost.profile import MemoryProfile
from autotune.cost.stages import SPLIT_BACKWARD, Stages
from autotune.spec.layout import BoolColumn, FloatColumn, IntColumn, LayoutTable
from autotune.spec.model import ModelSpec
from autotune.spec.workload import OPTIMIZER_STATES, Problem


@dataclass(frozen=True, kw_only=True)
class Shards:
    """Ranks over which zero_stage shards, for plain parameters and for routed experts; 1 where nothing is sharded."""

    own: IntColumn
    expert: FloatColumn


@dataclass(frozen=True, kw_only=True)
class RankParameters:
    """Parameters that one rank computes with, before zero_stage shards them. One row a place, one column a layout.

    own, expert: all copies of the weights; layer: the largest layer, expert parameters included; ends: the larger of
    embedding and head where the rank has one.
    """

    own: FloatColumn
    expert: FloatColumn
    layer: FloatColumn
    ends: FloatColumn


@dataclass(frozen=True, kw_only=True)
class StateBytes:
    """Bytes of one rank. One row a place, one column a layout or combination."""

    weights_bytes: FloatColumn
    gradients_bytes: FloatColumn
    optimizer_bytes: FloatColumn
    gathered_weights_bytes: FloatColumn
    buffers_bytes: FloatColumn

    @property
    def total_bytes(self) -> FloatColumn:
        """All five."""
        kept = self.weights_bytes + self.gradients_bytes + self.optimizer_bytes
        return kept + self.gathered_weights_bytes + self.buffers_bytes


def shards(table: LayoutTable, profile: MemoryProfile) -> Shards:
    """Ranks that share the states.

    own = dp_shard (* cp); expert = tp * cp * dp_shard / (etp * ep): the ranks with the same expert shard, replicas
    among them where the engine folds dp_replicate into the experts' data parallelism.
    """
    own = table.dp_shard * table.cp if profile.state_shards_over_cp else table.dp_shard
    dp = table.dp if profile.experts_shard_over_replicas else table.dp_shard
    expert = np.maximum(table.tp * table.cp * dp / (table.etp * table.ep), 1.0)
    sharded = table.zero_stage > 0
    return Shards(own=np.where(sharded, own, 1), expert=np.where(sharded, expert, 1.0))


def rank_parameters(table: LayoutTable, model: ModelSpec, profile: MemoryProfile, held: Stages) -> RankParameters:
    """Parameters of one rank at each place: its layers and, where it has them, embedding and head."""
    own, expert = np.zeros_like(held.head), np.zeros_like(held.head)
    layer = np.zeros(len(table))
    for kind, layers in zip(layer_kinds(model), held.layers, strict=True):
        layer_own, layer_expert = rank_layer_parameters(table, model, kind)
        own += layers * layer_own
        expert += layers * layer_expert
        layer = np.maximum(layer, layer_own + layer_expert)
    vocabulary = padded_vocabulary(model, table.tp, profile.vocab_multiple) / table.tp * model.hidden_size
    tied_here = held.embedding * held.head if model.tied_embeddings else 0.0
    own = own * held.copies + vocabulary * (held.embedding + held.head - tied_here)
    own += beside_embedding_parameters(model) * held.embedding
    own += (beside_head_parameters(model) + model.mtp_layers * mtp_parameters(model)) * held.head
    ends = vocabulary * np.maximum(held.embedding, held.head)
    return RankParameters(own=own, expert=expert * held.copies, layer=layer + np.zeros_like(own), ends=ends)


def state_bytes(
    table: LayoutTable, problem: Problem, profile: MemoryProfile, params: RankParameters, copies: FloatColumn
) -> StateBytes:
    """Bytes of the states of one rank.

        weights   = P * w / (S if zero_stage = 3)
        gradients = P * g / (S if zero_stage >= 2)
        optimizer = P * (4 * states + 4 if a master copy is kept) / (S if zero_stage >= 1)

    P: parameters of the rank; S: ranks that share the states; w, g: bytes of a weight and of a gradient (Rajbhandari
    et al. 2020, 1910.02054, section 3). An engine without master copy shards its only copy from zero_stage 1 on and
    gathers what it computes with: everything under stages 1 and 2, some layers under 3.
    """
    shard = shards(table, profile)
    sharded = params.own / shard.own + params.expert / shard.expert
    whole = params.own + params.expert
    element = ELEMENT_BYTES[problem.workload.precision]
    gradient = _gradient_bytes_per_param(problem, profile)
    zero = table.zero_stage
    states = FP32_BYTES * OPTIMIZER_STATES[problem.workload.optimizer]
    if profile.master_weights and element < FP32_BYTES:
        states += FP32_BYTES
    # Two copies of the weights are two members of one data-parallel group: sharded states exist once for both.
    optimizer = states * np.where(zero > 0, sharded / copies, whole)
    return StateBytes(
        weights_bytes=weight_bytes_per_param(problem, profile) * np.where(_whole(zero, profile), whole, sharded),
        gradients_bytes=gradient * np.where(shards_gradients_each_pass(table, profile), sharded, whole),
        optimizer_bytes=optimizer,
        gathered_weights_bytes=element * _gathered(table, profile, params, whole, element, problem),
        buffers_bytes=_buffers(table, profile, params, gradient),
    )


def weight_bytes_per_param(problem: Problem, profile: MemoryProfile) -> float:
    """Bytes of the weight that stays between steps."""
    return profile.weight_bytes_per_param or ELEMENT_BYTES[problem.workload.precision]


def shards_gradients_each_pass(table: LayoutTable, profile: MemoryProfile) -> BoolColumn:
    """Where gradients are sharded after every micro-batch, and so never held whole."""
    accumulates = (table.pp > 1) & profile.pipeline_accumulates_gradients
    return np.asarray((table.zero_stage >= 2) & ~accumulates)


def _gradient_bytes_per_param(problem: Problem, profile: MemoryProfile) -> float:
    if profile.gradients_as_weights:
        return weight_bytes_per_param(problem, profile)
    return GRADIENT_BYTES[problem.workload.gradient_dtype]


def _whole(zero: IntColumn, profile: MemoryProfile) -> FloatColumn:
    """Where the weights are not sharded."""
    return np.asarray(zero < 3 if profile.master_weights else zero < 1)


def _gathered(
    table: LayoutTable,
    profile: MemoryProfile,
    params: RankParameters,
    whole: FloatColumn,
    element: int,
    problem: Problem,
) -> FloatColumn:
    """Parameters whose gathered (or cast) copies live at once: some layers, one of which may be embedding or head."""
    layers = profile.gathered_layers
    some = np.maximum(layers * params.layer, (layers - 1) * params.layer + params.ends)
    some = np.minimum(some, whole)
    if profile.split_backward_keeps_gathered:
        some = np.where((table.pp > 1) & SPLIT_BACKWARD[table.schedule], whole, some)
    zero = table.zero_stage
    if profile.master_weights:
        return np.where(zero == 3, some, 0.0)
    casts = weight_bytes_per_param(problem, profile) > element
    return np.select([zero == 3, zero > 0], [some, whole], some if casts else 0.0)


def _buffers(table: LayoutTable, profile: MemoryProfile, params: RankParameters, gradient: float) -> FloatColumn:
    """The reduction bucket where gradients are reduced, and a layer's gradients before they are scattered."""
    reduces = table.dp * table.cp > 1
    bucket = np.where(reduces, profile.gradient_bucket_bytes.value, 0.0)
    unsharded = np.where(shards_gradients_each_pass(table, profile), gradient * params.layer, 0.0)
    return bucket + unsharded
