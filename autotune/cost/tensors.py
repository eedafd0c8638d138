"""Sizes that many terms share: tokens of a micro-batch on one rank, and the widths of its tensors."""

from dataclasses import dataclass

import numpy as np

from autotune.cost.parameters import LayerKind
from autotune.cost.precision import ELEMENT_BYTES
from autotune.spec.layout import FloatColumn, LayoutTable
from autotune.spec.model import ModelSpec
from autotune.spec.workload import Problem


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Of one micro-batch on one rank.

    all: after context parallelism; stored: of a tensor between the tensor-parallel parts (divided by tp under sequence
    parallelism); routed: token copies that reach this rank's experts when routing is balanced.
    """

    all: FloatColumn
    stored: FloatColumn
    routed: FloatColumn


@dataclass(frozen=True, kw_only=True)
class Widths:
    """Values per token on one tensor rank. query, key, value: all its heads; output: what attention returns."""

    query: FloatColumn
    key: FloatColumn
    value: FloatColumn
    output: FloatColumn
    heads: FloatColumn


def tokens(table: LayoutTable, problem: Problem) -> Tokens:
    """Tokens of one micro-batch.

    routed = top_k * etp / tp * tokens: each of the tp ranks routes its own part of the sequence to the experts, and
    the etp ranks that share an expert see the same tokens. Without sequence parallelism every tensor rank holds all
    tokens, and experts that are not split over tp see them tp times. Expert parallelism exchanges tokens, it does not
    remove any.
    """
    count = table.micro_batch_size * problem.workload.sequence_length / table.cp
    stored = np.where(table.sequence_parallel, count / table.tp, count)
    routed = np.zeros(len(table))
    if problem.model.moe is not None:
        copies = np.where(table.sequence_parallel, table.etp / table.tp, 1.0)
        routed = problem.model.moe.experts_per_token * copies * count
    return Tokens(all=count, stored=stored, routed=routed)


def widths(table: LayoutTable, model: ModelSpec) -> Widths:
    """Attention widths. Key and value heads are divided by tp, but a rank holds at least one."""
    heads = model.num_attention_heads / table.tp
    if model.mla is not None:
        key = model.mla.qk_nope_head_dim + model.mla.qk_rope_head_dim
        value = model.mla.v_head_dim
        return Widths(query=heads * key, key=heads * key, value=heads * value, output=heads * value, heads=heads)
    kv_heads = model.num_key_value_heads / np.minimum(table.tp, model.num_key_value_heads)
    kv = kv_heads * model.head_dim
    query = heads * model.head_dim
    return Widths(query=query, key=kv, value=kv, output=query, heads=heads)


def mlp_width(table: LayoutTable, model: ModelSpec, kind: LayerKind) -> FloatColumn:
    """Width of the MLP that every token passes on one rank: the plain one, or the shared experts."""
    if kind is LayerKind.DENSE or model.moe is None:
        return model.intermediate_size / table.tp
    return model.moe.shared_intermediate_size / table.tp


def expert_width(table: LayoutTable, model: ModelSpec) -> FloatColumn:
    """Width of one routed expert on one rank."""
    width = model.moe.expert_intermediate_size if model.moe is not None else 0
    return width / table.etp


def element_bytes(problem: Problem) -> int:
    """Bytes of one activation."""
    return ELEMENT_BYTES[problem.workload.precision]
