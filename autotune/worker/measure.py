"""Runs the steps of a trial: warm-up until step times are stable, timed steps, and one step that is looked into."""

import time
from dataclasses import dataclass

import torch
import torch.distributed as dist

from autotune.spec.outcome import Measured, RankReport
from autotune.worker import gradients
from autotune.worker.machine import fingerprint
from autotune.worker.memory import TensorPeak, reset_resident_peak, status_bytes
from autotune.worker.train import StepReport, Training, train_step

STABLE_WITHIN = 0.10
"""Warm-up ends when two steps in a row differ by less than this share of the longer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _TimedStep:
    """duration_s: the slowest rank's, the same on every rank."""

    duration_s: float
    report: StepReport


def measure(training: Training, *, resident_before_bytes: int) -> Measured | None:
    """What rank 0 measured of the whole trial; None on the other ranks.

    resident_before_bytes: what was resident before the model was built: interpreter, libraries, process groups.
    """
    spec = training.spec
    warmup = _warm_up(training)
    can_reset = _reset_peaks(training)
    timed = [_timed_step(training, len(warmup) + index) for index in range(spec.measured_steps)]
    report = _memory(training, resident_before_bytes if can_reset else None, step=len(warmup) + len(timed))
    ranks: list[RankReport] | None = [report] * dist.get_world_size() if dist.get_rank() == 0 else None
    training.enter("report")
    dist.gather_object(report, ranks)
    parameters = count_parameters(training)
    if ranks is None:
        return None
    steps = [*warmup, *timed]
    return Measured(
        warmup_step_times_s=tuple(step.duration_s for step in warmup),
        step_times_s=tuple(step.duration_s for step in timed),
        losses=tuple(step.report.loss for step in steps),
        gradient_norms=tuple(step.report.gradient_norm for step in steps),
        ranks=tuple(ranks),
        parameters=parameters,
        fingerprint=fingerprint(training.place.device),
    )


def _warm_up(training: Training) -> list[_TimedStep]:
    spec, steps = training.spec, list[_TimedStep]()
    while len(steps) < spec.max_warmup_steps:
        if len(steps) >= spec.min_warmup_steps and _is_stable(steps):
            break
        steps.append(_timed_step(training, len(steps)))
    return steps


def _is_stable(steps: list[_TimedStep]) -> bool:
    if len(steps) < 2:
        return True
    last, before = steps[-1].duration_s, steps[-2].duration_s
    return abs(last - before) < STABLE_WITHIN * max(last, before)


def _timed_step(training: Training, step: int) -> _TimedStep:
    device = training.place.device
    dist.barrier()
    started_s = time.perf_counter()
    report = train_step(training, step)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    duration = torch.tensor(time.perf_counter() - started_s, dtype=torch.float64, device=device)
    dist.all_reduce(duration, op=dist.ReduceOp.MAX)
    return _TimedStep(duration_s=duration.item(), report=report)


def _reset_peaks(training: Training) -> bool:
    device = training.place.device
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return False
    return reset_resident_peak()


def _memory(training: Training, resident_before_bytes: int | None, *, step: int) -> RankReport:
    """This rank's memory. The CPU takes one more step, with every tensor followed."""
    rank, device = dist.get_rank(), training.place.device
    own = sum(gradients.local_tensor(p).numel() for stage in training.stages for p in stage.parameters())
    if device.type == "cuda":
        return RankReport(
            rank=rank,
            parameters=own,
            allocated_bytes=torch.cuda.max_memory_allocated(device),
            reserved_bytes=torch.cuda.max_memory_reserved(device),
        )
    resident = None if resident_before_bytes is None else max(0, status_bytes("VmHWM") - resident_before_bytes)
    with TensorPeak() as tensors:
        train_step(training, step)
    return RankReport(rank=rank, parameters=own, tensor_bytes=tensors.peak_bytes, resident_bytes=resident)


def count_parameters(training: Training) -> int:
    """Parameters of the whole model, summed over the ranks without copies.

    Each of a rank's elements that is one of `shards` pieces is on (tp * cp * dp) / shards ranks, so the sum of
    elements * shards over all ranks is tp * cp * dp times the model.
    """
    place = training.place
    own = sum(
        gradients.local_tensor(parameter).numel() * gradients.shards_of(parameter)
        for parameter in gradients.counted_parameters(training.stages)
    )
    total = torch.tensor(own, dtype=torch.int64, device=place.device)
    dist.all_reduce(total)
    model, rest = divmod(int(total.item()), place.stage_ranks)
    assert rest == 0, f"{total.item()} elements on {place.stage_ranks} ranks"
    return model
