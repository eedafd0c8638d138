"""Seconds of communication that one layer exposes for one micro-batch: tensor, context and expert parallel."""

from dataclasses import dataclass

import numpy as np

from autotune.cost.collectives import Network, all_gather_s, all_reduce_s, all_to_all_s, group
from autotune.cost.layer_time import LayerTime
from autotune.cost.parameters import LayerKind
from autotune.cost.tensors import element_bytes, tokens, widths
from autotune.spec.layout import FloatColumn, LayoutTable, code_of
from autotune.spec.workload import Problem


@dataclass(frozen=True, kw_only=True)
class LayerCommunication:
    """Seconds of one layer and micro-batch; full recomputation's second forward pass counts as backward."""

    tensor_forward_s: FloatColumn
    tensor_backward_s: FloatColumn
    context_forward_s: FloatColumn
    context_backward_s: FloatColumn
    expert_forward_s: FloatColumn
    expert_backward_s: FloatColumn


def layer_communication(
    table: LayoutTable, problem: Problem, net: Network, kind: LayerKind, compute: LayerTime
) -> LayerCommunication:
    """One layer of that kind."""
    again = (table.recompute == code_of("recompute", "full")).astype(np.float64)
    tensor = _tensor_s(table, problem, net, kind)
    blocks = _context_s(table, problem, net)
    expert = _expert_s(table, problem, net, kind)
    context = np.maximum(blocks - compute.attention_forward_s, 0.0)
    # Keys and values come round again, and with them their gradients.
    context_backward = np.maximum(2 * blocks - compute.attention_backward_s, 0.0)
    return LayerCommunication(
        tensor_forward_s=tensor,
        tensor_backward_s=tensor * (1 + again),
        context_forward_s=context,
        context_backward_s=context_backward + context * again,
        expert_forward_s=expert,
        expert_backward_s=expert * (1 + again),
    )


def _tensor_s(table: LayoutTable, problem: Problem, net: Network, kind: LayerKind) -> FloatColumn:
    """One pass of one layer: an all-reduce of the micro-batch's hidden states behind attention and one behind the MLP.

    Sequence parallelism makes each an all-gather and a reduce-scatter of the same size (Korthikanti et al. 2022,
    2205.05198, section 4.2.2). Routed experts have none of their own: see `_expert_s`.
    """
    model = problem.model
    shared = model.moe is not None and model.moe.shared_intermediate_size > 0
    reductions = 2 if kind is LayerKind.DENSE or shared else 1
    whole_bytes = element_bytes(problem) * model.hidden_size * tokens(table, problem).all
    return reductions * all_reduce_s(net, group(net, table.tp, np.ones_like(table.tp)), whole_bytes)


def _context_s(table: LayoutTable, problem: Problem, net: Network) -> FloatColumn:
    """Keys and values of the other cp-1 ranks, one pass round the ring (Liu et al. 2023, 2310.01889)."""
    width = widths(table, problem.model)
    own_bytes = element_bytes(problem) * (width.key + width.value) * tokens(table, problem).all
    return all_gather_s(net, group(net, table.cp, table.tp), own_bytes * table.cp)


def _expert_s(table: LayoutTable, problem: Problem, net: Network, kind: LayerKind) -> FloatColumn:
    """One pass: tokens to their experts and back over ep, and around it a gather and a scatter over etp."""
    model = problem.model
    if kind is LayerKind.DENSE or model.moe is None:
        return np.zeros(len(table))
    count = tokens(table, problem)
    per_token_bytes = element_bytes(problem) * model.hidden_size
    sent_bytes = per_token_bytes * model.moe.experts_per_token * count.stored
    exchange = all_to_all_s(net, group(net, table.ep, table.etp), sent_bytes)
    inside = all_reduce_s(net, group(net, table.etp, np.ones_like(table.etp)), per_token_bytes * count.routed)
    return 2 * exchange + inside
