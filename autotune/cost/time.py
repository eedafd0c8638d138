"""TimeEstimate: the seconds that each part exposes in one optimizer step, row by row."""

import numpy as np

from autotune.cost.estimates import TimeEstimate
from autotune.cost.profile import Factors
from autotune.cost.terms import EndTerms, LayerTerms, PipelineTerms, RankTerms
from autotune.spec.layout import FloatColumn


def time_estimate(
    layers: tuple[LayerTerms, ...], ends: EndTerms, pipeline: PipelineTerms, rank: RankTerms, factors: Factors
) -> TimeEstimate:
    """A step of m micro-batches.

        step = m * pass of the slowest rank + bubble + transfers + exposed data-parallel communication + update

    The slowest rank has the most layers; where the rank with the head takes longer than that, the excess is shown
    under logits. `factors` scale the rates before they come here, so that what hides behind compute follows them.
    """
    m = pipeline.micro_batches
    f, b, w = (_of_rank(layers, pipeline, name) for name in ("f_s", "b_s", "w_s"))
    excess = _head_excess_s(layers, ends, pipeline)
    bubble = pipeline.bubble_f * f + pipeline.bubble_b * b + pipeline.bubble_w * w
    return TimeEstimate(
        forward_s=m * _of_rank(layers, pipeline, "forward_s"),
        backward_s=m * _of_rank(layers, pipeline, "backward_s"),
        recompute_s=m * _of_rank(layers, pipeline, "recompute_s"),
        logits_s=m * excess,
        tensor_parallel_s=m * _of_rank(layers, pipeline, "tensor_s"),
        context_parallel_s=m * _of_rank(layers, pipeline, "context_s"),
        expert_parallel_s=m * _of_rank(layers, pipeline, "expert_s"),
        pipeline_bubble_s=np.maximum(bubble, 0.0),
        pipeline_transfer_s=pipeline.transfers * (rank.send_s_per_byte * ends.sent_bytes + rank.send_latency_s),
        data_parallel_s=_data_parallel_s(pipeline, rank, f, b + w + excess),
        optimizer_s=rank.optimizer_s,
        overhead_s=np.full_like(m, factors.overhead_s),
    )


def _of_rank(layers: tuple[LayerTerms, ...], pipeline: PipelineTerms, name: str) -> FloatColumn:
    """Seconds of one micro-batch on the slowest rank: its layers of each kind times what one of them takes."""
    total: FloatColumn = pipeline.slow_layers[0] * getattr(layers[0], name)
    for kind in range(1, len(layers)):
        total += pipeline.slow_layers[kind] * getattr(layers[kind], name)
    return total


def _head_excess_s(layers: tuple[LayerTerms, ...], ends: EndTerms, pipeline: PipelineTerms) -> FloatColumn:
    """How much longer than the slowest other rank the rank with the head takes for one micro-batch."""
    excess = pipeline.head_share * ends.head_s
    for kind, layer in enumerate(layers):
        excess += pipeline.head_layers[kind] * (layer.f_s + layer.b_s + layer.w_s)
    return np.maximum(excess, 0.0)


def _data_parallel_s(
    pipeline: PipelineTerms, rank: RankTerms, forward_s: FloatColumn, backward_s: FloatColumn
) -> FloatColumn:
    """Gathers and reductions, less what compute hides.

    Once a step (zero_stage 0 to 2 gather after the update, 0 and 1 reduce after the last micro-batch) they hide behind
    one micro-batch's pass; weights under 3 and gradients from 2 on move with every pass and hide behind it. The first
    layer's share has nothing to hide behind (Zhao et al. 2023, 2304.11277, section 3.3). backward_s holds what the rank
    with the head takes longer, since that rank sets the pace.
    """
    m, passes = pipeline.micro_batches, pipeline.gather_passes
    gathers = np.where(rank.gathers_each_pass, passes, 1.0)
    reduces = np.where(rank.reduces_each_pass, passes, 1.0)
    gather_window = np.where(rank.gathers_each_pass, m / passes, 1.0) * forward_s
    reduce_window = np.where(rank.reduces_each_pass, m / passes, 1.0) * backward_s
    in_backward = rank.reduce_s + np.where(rank.gathers_each_pass, rank.gather_s, 0.0)
    first_layer = 1 / np.maximum(pipeline.slow_layers.sum(axis=0), 1.0)
    exposed = gathers * _exposed_s(rank.gather_s, gather_window, first_layer)
    return exposed + reduces * _exposed_s(in_backward, reduce_window, first_layer) + rank.twins_s


def _exposed_s(moving_s: FloatColumn, window_s: FloatColumn, first_layer: FloatColumn) -> FloatColumn:
    """Of communication that runs beside compute: what outlasts it, and at least the first layer's share."""
    return np.maximum(moving_s - window_s, first_layer * moving_s)
