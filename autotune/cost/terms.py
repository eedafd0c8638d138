"""The terms of both estimates by the axes they depend on, each computed once for every combination that occurs.

A million layouts have a few thousand combinations of the axes that set a layer's cost, so that what is expensive is
done there; `memory` and `time` only combine these terms row by row.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from autotune.cost.activations import layer_activations, logits_bytes
from autotune.cost.collectives import Network, group, next_rank_link
from autotune.cost.data_parallel import optimizer_s, step_communication
from autotune.cost.kernels import Rates
from autotune.cost.layer_communication import layer_communication
from autotune.cost.layer_time import head_time, layer_time
from autotune.cost.parameters import LayerKind
from autotune.cost.profile import MemoryProfile
from autotune.cost.schedules import Pipe, bubble_terms, in_flight
from autotune.cost.stages import Place, stages
from autotune.cost.states import StateBytes, rank_parameters, shards, shards_gradients_each_pass, state_bytes
from autotune.cost.tensors import element_bytes, tokens
from autotune.spec.layout import BoolColumn, FloatColumn, LayoutTable, code_of
from autotune.spec.workload import Problem

LAYER_AXES: Final = ("tp", "cp", "ep", "etp", "sequence_parallel", "micro_batch_size", "recompute")
PIPELINE_AXES: Final = ("pp", "vpp", "schedule", "micro_batch_size", "dp_replicate", "dp_shard")
RANK_AXES: Final = ("tp", "cp", "ep", "etp", "pp", "vpp", "dp_replicate", "dp_shard", "zero_stage", "schedule")


@dataclass(frozen=True, kw_only=True)
class LayerTerms:
    """Of one layer of one kind, for one micro-batch on one rank.

    f, b, w: its share of a rank's forward, input-gradient and weight-gradient pass, communication and recomputation
    included; the other times are the parts of these three.
    """

    stored_bytes: FloatColumn
    rebuilt_bytes: FloatColumn
    working_bytes: FloatColumn
    forward_s: FloatColumn
    backward_s: FloatColumn
    recompute_s: FloatColumn
    tensor_s: FloatColumn
    context_s: FloatColumn
    expert_s: FloatColumn
    f_s: FloatColumn
    b_s: FloatColumn
    w_s: FloatColumn


@dataclass(frozen=True, kw_only=True)
class EndTerms:
    """What stands at the ends of the model, and what leaves a rank; the same axes as LayerTerms."""

    logits_bytes: FloatColumn
    head_s: FloatColumn
    sent_bytes: FloatColumn


@dataclass(frozen=True, kw_only=True)
class PlaceTerms:
    """What a pipeline rank holds, by its shape alone. One row a Place.

    in_flight: micro-batches at the peak; layers: [kind, place]; head: how many; rank: in the pipeline.
    """

    in_flight: FloatColumn
    layers: FloatColumn
    head: FloatColumn
    rank: FloatColumn


@dataclass(frozen=True, kw_only=True)
class PipelineTerms:
    """How a pipeline runs, by its shape alone; the same axes as PlaceTerms. By kind: one row a layer kind.

    micro_batches: m; gather_passes: how often a step gathers weights that are not kept, m or once a chunk;
    slow_layers: by kind, on the rank that sets the pace; head_layers: by kind, on the rank with the head, minus
    slow_layers; head_share: of the micro-batches whose loss that rank computes; bubble_f, bubble_b, bubble_w: see
    schedules; transfers: messages that a rank waits for in a step.
    """

    micro_batches: FloatColumn
    gather_passes: FloatColumn
    slow_layers: FloatColumn
    head_layers: FloatColumn
    head_share: FloatColumn
    bubble_f: FloatColumn
    bubble_b: FloatColumn
    bubble_w: FloatColumn
    transfers: FloatColumn


@dataclass(frozen=True, kw_only=True)
class RankTerms:
    """What a rank does once a step or once a pass, and what it has outside the framework.

    gathers_each_pass, reduces_each_pass: under zero_stage 3, and
    from 2 on; send_s_per_byte, send_latency_s: to the next pipeline rank.
    """

    outside_bytes: FloatColumn
    reduce_s: FloatColumn
    gather_s: FloatColumn
    twins_s: FloatColumn
    optimizer_s: FloatColumn
    gathers_each_pass: BoolColumn
    reduces_each_pass: BoolColumn
    send_s_per_byte: FloatColumn
    send_latency_s: FloatColumn


def layer_terms(
    table: LayoutTable, problem: Problem, profile: MemoryProfile, rate: Rates, net: Network, kind: LayerKind
) -> LayerTerms:
    """One layer of that kind; reads LAYER_AXES."""
    memory = layer_activations(table, problem, profile, kind)
    compute = layer_time(table, problem, profile, rate, kind)
    comm = layer_communication(table, problem, net, kind, compute)
    comm_forward = comm.tensor_forward_s + comm.context_forward_s + comm.expert_forward_s
    comm_backward = comm.tensor_backward_s + comm.context_backward_s + comm.expert_backward_s
    return LayerTerms(
        stored_bytes=memory.stored_bytes,
        rebuilt_bytes=memory.rebuilt_bytes,
        working_bytes=memory.working_bytes,
        forward_s=compute.forward_s,
        backward_s=compute.input_gradient_s + compute.weight_gradient_s,
        recompute_s=compute.recompute_s,
        tensor_s=comm.tensor_forward_s + comm.tensor_backward_s,
        context_s=comm.context_forward_s + comm.context_backward_s,
        expert_s=comm.expert_forward_s + comm.expert_backward_s,
        f_s=compute.forward_s + comm_forward,
        b_s=compute.input_gradient_s + compute.recompute_s + comm_backward,
        w_s=compute.weight_gradient_s,
    )


def end_terms(table: LayoutTable, problem: Problem, profile: MemoryProfile, rate: Rates) -> EndTerms:
    """Head, loss and the hidden states that travel between pipeline ranks; reads LAYER_AXES."""
    return EndTerms(
        logits_bytes=logits_bytes(table, problem, profile),
        head_s=head_time(table, problem, profile, rate),
        sent_bytes=element_bytes(problem) * problem.model.hidden_size * tokens(table, problem).stored,
    )


def pipeline_terms(table: LayoutTable, problem: Problem) -> tuple[PlaceTerms, PipelineTerms]:
    """The pipeline's shape; reads PIPELINE_AXES."""
    held = stages(table, problem.model)
    micro_batches = np.maximum(table.num_microbatches(problem.workload.global_batch_size), 1).astype(np.float64)
    pipe = Pipe(p=table.pp.astype(np.float64), m=micro_batches, v=table.vpp.astype(np.float64))
    bubble_f, bubble_b, bubble_w = bubble_terms(table.schedule, pipe)
    layers = np.stack(held.layers)
    total = held.all_layers
    second_is_slow = total[Place.SECOND] >= total[Place.FIRST]
    slow = np.where(second_is_slow, layers[:, Place.SECOND], layers[:, Place.FIRST])
    head_is_last = held.head[Place.LAST] > 0
    at_head = np.where(head_is_last, layers[:, Place.LAST], layers[:, Place.FIRST])
    breadth_first = table.schedule == code_of("schedule", "breadth-first")
    piped = table.pp > 1
    places = PlaceTerms(
        in_flight=np.stack([in_flight(table.schedule, pipe, held.rank[place]) for place in Place]),
        layers=layers,
        head=held.head,
        rank=held.rank.astype(np.float64),
    )
    return places, PipelineTerms(
        micro_batches=micro_batches,
        gather_passes=np.where(breadth_first & piped, 1.0, micro_batches),
        slow_layers=slow,
        head_layers=at_head - slow,
        head_share=1 / held.copies[Place.FIRST],
        bubble_f=bubble_f,
        bubble_b=bubble_b,
        bubble_w=bubble_w,
        transfers=np.where(piped, 2 * table.vpp * (micro_batches + table.pp - 1), 0.0),
    )


def rank_terms(
    table: LayoutTable, problem: Problem, profile: MemoryProfile, rate: Rates, net: Network
) -> tuple[StateBytes, RankTerms]:
    """States of a rank and what moves them; reads RANK_AXES."""
    held = stages(table, problem.model)
    copies = held.copies[Place.FIRST]
    params = rank_parameters(table, problem.model, profile, held)
    shard = shards(table, profile)
    states = state_bytes(table, problem, profile, params, held.copies)
    step = step_communication(table, problem, profile, net, params, shard, copies)
    send_s_per_byte, send_latency_s = next_rank_link(net, group(net, table.pp, table.tp * table.cp * table.dp))
    return states, RankTerms(
        outside_bytes=outside_bytes(table, profile),
        reduce_s=step.reduce_s,
        gather_s=step.gather_s,
        twins_s=step.twins_s,
        optimizer_s=optimizer_s(problem, profile, rate, params, shard, copies),
        gathers_each_pass=table.zero_stage == 3,
        reduces_each_pass=shards_gradients_each_pass(table, profile),
        send_s_per_byte=send_s_per_byte,
        send_latency_s=send_latency_s,
    )


def outside_bytes(table: LayoutTable, profile: MemoryProfile) -> FloatColumn:
    """What lives outside the framework: a fixed part, and buffers for each peer that a rank keeps a connection to.

    A ring connects a rank to two peers however large the group is; an expert all-to-all to all others.
    """
    rings = sum(2 * (size > 1).astype(np.int64) for size in (table.tp, table.cp, table.dp, table.pp, table.etp))
    peers = rings + (table.ep - 1)
    return np.asarray(profile.outside_bytes.value + profile.outside_per_peer_bytes.value * peers)
