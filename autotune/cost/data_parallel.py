"""Seconds of what happens once a step, or once a pass under zero_stage 3: gradients, gathered weights, the update."""

from dataclasses import dataclass

import numpy as np

from autotune.cost.collectives import Network, all_gather_s, all_reduce_s, group
from autotune.cost.kernels import Rates
from autotune.cost.parameters import padded_vocabulary
from autotune.cost.precision import ELEMENT_BYTES, FP32_BYTES, GRADIENT_BYTES
from autotune.cost.profile import MemoryProfile
from autotune.cost.stages import V_SHAPED
from autotune.cost.states import RankParameters, Shards, weight_bytes_per_param
from autotune.spec.layout import FloatColumn, LayoutTable
from autotune.spec.workload import OPTIMIZER_STATES, Problem


@dataclass(frozen=True, kw_only=True)
class StepCommunication:
    """Seconds before any of it is hidden behind compute.

    reduce: one reduction of all gradients of the fullest rank; gather: one gather of all its weights, 0 where nothing
    is sharded; twins: between ranks that hold the same weights (tied embedding, second copy of the model); never
    hidden.
    """

    reduce_s: FloatColumn
    gather_s: FloatColumn
    twins_s: FloatColumn


def step_communication(
    table: LayoutTable,
    problem: Problem,
    profile: MemoryProfile,
    net: Network,
    params: RankParameters,
    shard: Shards,
    copies: FloatColumn,
) -> StepCommunication:
    """Reduction and gather of one step.

    Sharded gradients are reduce-scattered over the ranks that share the states and the result all-reduced over the
    replicas of that group; unsharded ones are all-reduced over all data- and context-parallel ranks (Rajbhandari et
    al. 2020, 1910.02054, section 7; Zhao et al. 2023, 2304.11277, section 3.2.2 for the two steps).
    """
    gradient = GRADIENT_BYTES[problem.workload.gradient_dtype]
    element = ELEMENT_BYTES[problem.workload.precision]
    own, expert = params.own.max(axis=0), params.expert.max(axis=0)
    ones = np.ones(len(table))
    over_cp = profile.state_shards_over_cp
    own_shards = group(net, shard.own, table.tp if over_cp else table.tp * table.cp)
    spread = np.where(shard.own > 1, table.tp * table.cp * table.dp_shard, table.tp)
    replicas = group(net, np.maximum(table.dp * table.cp / shard.own, 1), spread)
    reduce = all_gather_s(net, own_shards, gradient * own)
    reduce += all_reduce_s(net, replicas, gradient * own / shard.own)
    gather = all_gather_s(net, own_shards, element * own)
    if problem.model.moe is not None:
        stride = table.etp * table.ep
        holders = np.maximum(table.tp * table.cp * table.dp / stride, ones)
        expert_shards = group(net, shard.expert, stride)
        expert_replicas = group(net, np.maximum(holders / shard.expert, ones), stride * shard.expert)
        reduce += all_gather_s(net, expert_shards, gradient * expert)
        reduce += all_reduce_s(net, expert_replicas, gradient * expert / shard.expert)
        gather += all_gather_s(net, expert_shards, element * expert)
    twins = _twins_s(table, problem, profile, net, gradient * (own + expert), copies)
    return StepCommunication(reduce_s=reduce, gather_s=gather, twins_s=twins)


def _twins_s(
    table: LayoutTable,
    problem: Problem,
    profile: MemoryProfile,
    net: Network,
    gradient_bytes: FloatColumn,
    copies: FloatColumn,
) -> FloatColumn:
    """All-reduce over two ranks: of a tied embedding at both ends, of all gradients where the model is held twice."""
    far = group(net, np.full(len(table), 2), table.tp * table.cp * table.dp * np.maximum(table.pp - 1, 1))
    twice = np.where(copies > 1, all_reduce_s(net, far, gradient_bytes / copies), 0.0)
    if not problem.model.tied_embeddings:
        return twice
    rows = padded_vocabulary(problem.model, table.tp, profile.vocab_multiple) / table.tp
    size = GRADIENT_BYTES[problem.workload.gradient_dtype] * rows * problem.model.hidden_size
    tied = (table.pp > 1) & ~V_SHAPED[table.schedule] & (copies == 1)
    return twice + np.where(tied, all_reduce_s(net, far, size), 0.0)


def optimizer_s(
    problem: Problem, profile: MemoryProfile, rate: Rates, params: RankParameters, shard: Shards, copies: FloatColumn
) -> FloatColumn:
    """The update, bound by memory.

        t = P / S * (2 * states + g + g + w) / B

    P / S: parameters that this rank updates; states: bytes of master copy and moments, read and written; g: gradient,
    read once for its norm and once for the update; w: the compute weight, written (and read where it is the master).
    """
    updated = (params.own / shard.own + params.expert / shard.expert).max(axis=0)
    updated = np.where(shard.own > 1, updated / copies, updated)
    gradient = GRADIENT_BYTES[problem.workload.gradient_dtype]
    weight = weight_bytes_per_param(problem, profile)
    has_master = profile.master_weights and ELEMENT_BYTES[problem.workload.precision] < FP32_BYTES
    states = FP32_BYTES * (OPTIMIZER_STATES[problem.workload.optimizer] + has_master)
    moved = 2 * states + 2 * gradient + weight * (1 if has_master else 2)
    return np.asarray(updated * moved / rate.memory_bytes_per_s)
