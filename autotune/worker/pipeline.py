"""Pipeline stages and schedules of torch.distributed.pipelining: which layers a stage has, and who runs it when."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from torch.distributed.pipelining.schedules import PipelineScheduleMulti, PipelineScheduleSingle

from autotune.spec.layout import Layout
from autotune.spec.model import ModelSpec
from autotune.spec.schedules import SCHEDULES
from autotune.spec.workload import WorkloadSpec
from autotune.worker.model import Stage, StagePlan
from autotune.worker.places import Place

Schedule: TypeAlias = PipelineScheduleSingle | PipelineScheduleMulti
LossFunction = Callable[[Tensor, Tensor], Tensor]

_ONE_STAGE: dict[str, type[PipelineScheduleSingle]] = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
_MANY_STAGES: dict[str, type[PipelineScheduleMulti]] = {
    "interleaved": ScheduleInterleaved1F1B,
    "breadth-first": ScheduleLoopedBFS,
    "interleaved-zb": ScheduleInterleavedZeroBubble,
    "zb-v": ScheduleZBVZeroBubble,
    "dualpipev": ScheduleDualPipeV,
}


def stage_plans(layout: Layout, layers: int, pipeline_rank: int) -> tuple[StagePlan, ...]:
    """The stages of one pipeline rank, in the order in which a micro-batch passes them."""
    sizes = stage_sizes(layout, layers)
    return tuple(
        StagePlan(index=index, count=len(sizes), layers=range(sum(sizes[:index]), sum(sizes[: index + 1])))
        for index in stages_of_rank(layout, pipeline_rank)
    )


def stages_of_rank(layout: Layout, pipeline_rank: int) -> tuple[int, ...]:
    """Rank r has the stages r, r + pp, r + 2·pp …; in a V it has r and 2·pp-1-r."""
    if SCHEDULES[layout.schedule].v_shaped and layout.pp > 1:
        return pipeline_rank, 2 * layout.pp - 1 - pipeline_rank
    return tuple(range(pipeline_rank, layout.pp * layout.vpp, layout.pp))


def stage_sizes(layout: Layout, layers: int) -> tuple[int, ...]:
    """Layers of each stage.

    Where pp·vpp does not divide them, every stage has ceil(layers / (pp·vpp)) and the missing ones are taken one by one
    from the ranks: from the last, then the first, then the others, and so around again. In a rank a stage with the head
    or the embedding gives first, then its last stages do.
    """
    count = layout.pp * layout.vpp
    most = -(-layers // count)
    sizes = [most] * count
    ranks = list(dict.fromkeys([layout.pp - 1, 0, *range(1, layout.pp - 1)]))
    for turn in range(count * most - layers):
        sizes[_next_to_give(layout, ranks[turn % layout.pp], sizes, most)] -= 1
    return tuple(sizes)


def _next_to_give(layout: Layout, rank: int, sizes: list[int], most: int) -> int:
    ends = (len(sizes) - 1, 0)
    own = [stage for stage in stages_of_rank(layout, rank) if sizes[stage] == most]
    return next((stage for stage in ends if stage in own), own[-1])


def build_schedule(
    stages: list[Stage],
    model: ModelSpec,
    workload: WorkloadSpec,
    place: Place,
    *,
    dtype: torch.dtype,
    loss: LossFunction,
) -> Schedule:
    """The schedule that runs this rank's stages. Losses are sums already: gradients are not scaled again."""
    layout = place.layout
    parts = [_pipeline_stage(stage, model, workload, place, dtype=dtype) for stage in stages]
    micro_batches = layout.num_microbatches(workload.global_batch_size)
    if layout.schedule in _ONE_STAGE:
        (part,) = parts
        return _ONE_STAGE[layout.schedule](part, micro_batches, loss_fn=loss, scale_grads=False)
    return _MANY_STAGES[layout.schedule](parts, micro_batches, loss_fn=loss, scale_grads=False)


def _pipeline_stage(
    stage: Stage, model: ModelSpec, workload: WorkloadSpec, place: Place, *, dtype: torch.dtype
) -> PipelineStage:
    """A stage with the shapes that it receives and sends, so that no rank must run a trial pass to learn them."""
    layout = place.layout
    tokens = workload.sequence_length // layout.cp
    between = tokens // layout.tp if layout.sequence_parallel else tokens
    batch = layout.micro_batch_size
    hidden = torch.empty(batch, between, model.hidden_size, dtype=dtype, device="meta", requires_grad=True)
    ids = torch.empty(batch, tokens, dtype=torch.int64, device="meta")
    logits = torch.empty(batch, tokens, model.vocab_size, dtype=dtype, device="meta", requires_grad=True)
    plan = stage.plan
    return PipelineStage(
        stage,
        plan.index,
        plan.count,
        place.device,
        input_args=ids if plan.has_embedding else hidden,
        output_args=logits if plan.has_head else hidden,
        group=place.pipeline,
    )


def runs_schedule(name: str) -> bool:
    """Whether torch has this schedule."""
    return name in _ONE_STAGE or name in _MANY_STAGES
