"""One training step under any layout: forward and backward over the micro-batches, gradients, norm, optimizer."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import loss_parallel

from autotune.spec.outcome import TrialSpec
from autotune.worker import gradients
from autotune.worker.attention import sequence_shards
from autotune.worker.data import Batch, local_batch
from autotune.worker.model import Recompute, Stage, build_stage
from autotune.worker.parallelize import COMPUTE_DTYPE, parallelize
from autotune.worker.pipeline import LossFunction, Schedule, build_schedule, stage_plans
from autotune.worker.places import Place, uses_fsdp

EnterPhase = Callable[[str], None]

_RECOMPUTE: dict[str, Recompute] = {"none": "none", "selective": "selective", "full": "full"}


@dataclass(frozen=True, kw_only=True, slots=True)
class StepReport:
    """loss: mean cross-entropy over the global batch; gradient_norm: of the whole model; the same on every rank."""

    loss: float
    gradient_norm: float


@dataclass(frozen=True, kw_only=True)
class Training:
    """One rank's part of a model under a layout. schedule: None without pipeline parallelism (then one stage)."""

    spec: TrialSpec
    place: Place
    stages: list[Stage]
    schedule: Schedule | None
    loss: LossFunction
    optimizer: torch.optim.Optimizer
    enter: EnterPhase


def build(spec: TrialSpec, place: Place, enter: EnterPhase) -> Training:
    """This rank's part. Every rank of the process group calls it at the same time.

    enter: told what the rank does: "forward", "loss", "backward", "optimizer".
    """
    layout, model, workload = spec.layout, spec.model, spec.workload
    dtype = COMPUTE_DTYPE[workload.precision]
    shards = sequence_shards(model, workload.sequence_length, place.context, device=place.device, dtype=dtype)
    stages = []
    for plan in stage_plans(layout, model.num_hidden_layers, place.pipeline_rank):
        unfused = workload.attention == "unfused"
        stage = build_stage(model, plan, shards, recompute=_RECOMPUTE[layout.recompute], unfused=unfused)
        parallelize(stage, place, workload, seed=spec.seed)
        stage.register_forward_pre_hook(lambda *_: enter("forward"))
        stage.register_forward_hook(lambda *_: enter("backward"))  # what comes next, unless it is another forward
        stages.append(stage)
    loss = mean_loss(workload.tokens_per_step, enter)
    return Training(
        spec=spec,
        place=place,
        stages=stages,
        schedule=build_schedule(stages, model, workload, place, dtype=dtype, loss=loss) if layout.pp > 1 else None,
        loss=loss,
        optimizer=_optimizer(spec, stages),
        enter=enter,
    )


def mean_loss(tokens_per_step: int, enter: EnterPhase) -> LossFunction:
    """A micro-batch's summed cross-entropy over all tokens of the step: the parts of all ranks sum to the mean loss."""

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        enter("loss")
        total = nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), reduction="sum")
        total = total.to_local() if isinstance(total, DTensor) else total
        enter("backward")
        return total / tokens_per_step

    return loss


def train_step(training: Training, step: int) -> StepReport:
    """One optimizer step over one global batch."""
    spec, place, stages = training.spec, training.place, training.stages
    positions = stages[0].shards.positions
    batch = local_batch(spec.model, spec.workload, place, positions, seed=spec.seed, step=step)
    with _vocabulary_cut(place):
        losses = _accumulate(training, batch) if training.schedule is None else _run_pipeline(training, batch)
    training.enter("gradients")
    gradients.complete_partial_gradients(stages)
    if not uses_fsdp(place.layout, spec.workload):
        gradients.sum_over_copies(stages, place)
    gradients.sum_over_tied(stages, place)
    report = _report(training, losses)
    training.enter("optimizer")
    training.optimizer.step()
    training.optimizer.zero_grad(set_to_none=True)
    return report


def _vocabulary_cut(place: Place) -> AbstractContextManager[None]:
    """Logits stay cut along the vocabulary under tensor parallelism, also in the backward pass of the loss."""
    return loss_parallel() if place.layout.tp > 1 else nullcontext()


def _accumulate(training: Training, batch: Batch) -> list[Tensor]:
    """Without a pipeline: one micro-batch after the other.

    What zero_stage shards is reduced after each micro-batch, since whole gradients would have to be kept otherwise.
    Copies are summed after the last.
    """
    (stage,) = training.stages
    size, losses = training.spec.layout.micro_batch_size, []
    parts = list(zip(batch.tokens.split(size), batch.labels.split(size), strict=True))
    for index, (tokens, labels) in enumerate(parts):
        if isinstance(stage, FSDPModule):
            _tell_fsdp(stage, training.spec.layout.zero_stage, last=index == len(parts) - 1)
        loss = training.loss(stage(tokens), labels)
        loss.backward()
        losses.append(loss.detach())
    return losses


def _tell_fsdp(stage: FSDPModule, zero_stage: int, *, last: bool) -> None:
    stage.set_is_last_backward(last)
    if zero_stage == 0:
        stage.set_requires_gradient_sync(last)
    else:
        stage.set_requires_all_reduce(last)
    if zero_stage == 2:  # its weights are not sharded: they are gathered once a step
        stage.set_reshard_after_backward(last)


def _run_pipeline(training: Training, batch: Batch) -> list[Tensor]:
    assert training.schedule is not None
    losses: list[Tensor] = []
    first = any(stage.embedding is not None for stage in training.stages)
    last = any(stage.head is not None for stage in training.stages)
    training.schedule.step(
        *([batch.tokens] if first else []),
        target=batch.labels if last else None,
        losses=losses if last else None,
        return_outputs=False,
    )
    return [loss.detach() for loss in losses]


def _report(training: Training, losses: list[Tensor]) -> StepReport:
    """Sum every rank's share of the loss and of the squared norm. The tp ranks all have the same loss."""
    place = training.place
    own_loss = torch.stack(losses).double().sum().item() / place.layout.tp if losses else 0.0
    own_square = gradients.own_share_of_squared_norm(training.stages, place)
    shares = torch.tensor([own_loss, own_square], dtype=torch.float64, device=place.device)
    dist.all_reduce(shares)
    loss, square = shares.tolist()
    return StepReport(loss=loss, gradient_norm=square**0.5)


def _optimizer(spec: TrialSpec, stages: list[Stage]) -> torch.optim.Optimizer:
    """AdamW or SGD over groups of one kind of tensor each: fused steps take no mixture of Tensor and DTensor."""
    groups: dict[object, list[nn.Parameter]] = {}
    for stage in stages:
        for parameter in stage.parameters():
            mesh = parameter.device_mesh if isinstance(parameter, DTensor) else None
            groups.setdefault(mesh, []).append(parameter)
    kind = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[spec.workload.optimizer]
    fused = any(parameter.is_cuda for group in groups.values() for parameter in group)
    # One parameter after the other without fusion: torch's foreach keeps intermediates as large as all of them.
    return kind([{"params": group} for group in groups.values()], lr=spec.learning_rate, foreach=False, fused=fused)
