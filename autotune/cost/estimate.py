"""estimate(): memory and time of every row of a table, in chunks so that the memory it needs itself is bounded."""

from dataclasses import fields, replace
from typing import Final, TypeVar

import numpy as np

from autotune.cost.collectives import Network, network
from autotune.cost.distinct import combinations, numbered, spread
from autotune.cost.estimates import Estimates, MemoryEstimate, TimeEstimate
from autotune.cost.kernels import Rates, rates
from autotune.cost.memory import ByPlace, host_bytes, memory_estimate
from autotune.cost.parameters import layer_kinds
from autotune.cost.profile import Factors, MemoryProfile
from autotune.cost.terms import (
    LAYER_AXES,
    PIPELINE_AXES,
    RANK_AXES,
    end_terms,
    layer_terms,
    pipeline_terms,
    rank_terms,
)
from autotune.cost.time import time_estimate
from autotune.spec.layout import LayoutTable
from autotune.spec.workload import Problem

CHUNK_ROWS: Final = 65536  # about 60 MB of columns at work; smaller chunks compute the same combinations more often

_Parts = TypeVar("_Parts", MemoryEstimate, TimeEstimate)


def estimate(table: LayoutTable, problem: Problem, profile: MemoryProfile, factors: Factors) -> Estimates:
    """What the cost model says of each row. Rows are independent of each other.

    Raises InputError if the GPU has no peak rate for the workload's precision.
    """
    rate, net = scaled(rates(problem), network(problem.cluster), factors)
    starts = range(0, max(len(table), 1), CHUNK_ROWS)
    chunks = [
        _estimate_chunk(table.take(slice(start, start + CHUNK_ROWS)), problem, profile, factors, rate, net)
        for start in starts
    ]
    if len(chunks) == 1:
        return chunks[0]
    return Estimates(
        memory=_joined([chunk.memory for chunk in chunks]),
        time=_joined([chunk.time for chunk in chunks]),
        fullest_stage=np.concatenate([chunk.fullest_stage for chunk in chunks]),
        host_bytes=np.concatenate([chunk.host_bytes for chunk in chunks]),
    )


def scaled(rate: Rates, net: Network, factors: Factors) -> tuple[Rates, Network]:
    """Rates and links slowed by the factors, so that what hides behind compute follows them."""
    slow, far = factors.compute_time, factors.communication_time
    slower = replace(
        rate,
        product_flops_per_s=rate.product_flops_per_s / slow,
        attention_forward_flops_per_s=rate.attention_forward_flops_per_s / slow,
        attention_backward_flops_per_s=rate.attention_backward_flops_per_s / slow,
        memory_bytes_per_s=rate.memory_bytes_per_s / slow,
        launch_s=rate.launch_s * slow,
    )
    farther = replace(
        net,
        inner_bytes_per_s=net.inner_bytes_per_s / far,
        inner_latency_s=net.inner_latency_s * far,
        outer_bytes_per_s=net.outer_bytes_per_s / far,
        outer_latency_s=net.outer_latency_s * far,
    )
    return slower, farther


def _estimate_chunk(
    table: LayoutTable, problem: Problem, profile: MemoryProfile, factors: Factors, rate: Rates, net: Network
) -> Estimates:
    columns = numbered(table, {*LAYER_AXES, *PIPELINE_AXES, *RANK_AXES})
    by_layer = combinations(table, columns, LAYER_AXES)
    by_pipeline = combinations(table, columns, PIPELINE_AXES)
    by_rank = combinations(table, columns, RANK_AXES)
    layers = tuple(
        spread(layer_terms(by_layer.table, problem, profile, rate, net, kind), by_layer.inverse)
        for kind in layer_kinds(problem.model)
    )
    ends = spread(end_terms(by_layer.table, problem, profile, rate), by_layer.inverse)
    places, pipes = pipeline_terms(by_pipeline.table, problem)
    states, ranks = rank_terms(by_rank.table, problem, profile, rate, net)
    pipeline = spread(pipes, by_pipeline.inverse)
    rank = spread(ranks, by_rank.inverse)
    by_place = ByPlace(
        places=places, places_inverse=by_pipeline.inverse, states=states, states_inverse=by_rank.inverse
    )  # fmt: skip
    memory, stage = memory_estimate(layers, ends, by_place, rank.outside_bytes, profile, factors)
    return Estimates(
        memory=memory,
        time=time_estimate(layers, ends, pipeline, rank, factors),
        fullest_stage=stage,
        host_bytes=host_bytes(table, memory, problem.cluster),
    )


def _joined(parts: list[_Parts]) -> _Parts:
    columns = {f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(parts[0])}
    return type(parts[0])(**columns)
