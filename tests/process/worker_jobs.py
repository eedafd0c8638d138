"""Several layouts one after the other in the same processes: `torchrun … worker_jobs.py JOBS RESULTS`.

JOBS: a list of `Job` as JSON; RESULTS: by the job's name, [loss, gradient norm] of each of three steps.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist

from autotune.spec.layout import Layout
from autotune.spec.model import ModelSpec
from autotune.spec.outcome import TrialSpec
from autotune.spec.workload import WorkloadSpec
from autotune.worker import gradients, parallelize, train
from autotune.worker.places import place_of

STEPS = 3

Curve = list[tuple[float, float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """model, workload: what differs from `MODEL` and `WORKLOAD`; fault: what is wrong with the worker in this job."""

    name: str
    key: str
    model: dict[str, object] = field(default_factory=dict)
    workload: dict[str, object] = field(default_factory=dict)
    fault: str = ""


MODEL = {
    "name": "tiny", "architecture": "LlamaForCausalLM", "hidden_size": 32, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 64, "vocab_size": 64,
}  # fmt: skip
WORKLOAD = {"sequence_length": 16, "global_batch_size": 8, "precision": "fp32", "optimizer": "sgd"}
LEARNING_RATE = 1.0
"""High, so that a wrong gradient shows in the next loss."""


def curve(job: Job) -> Curve:
    """Loss and gradient norm of each step, the same on every rank."""
    layout = Layout.from_key(job.key)
    spec = TrialSpec(
        layout=layout, model=ModelSpec(**{**MODEL, **job.model}), workload=WorkloadSpec(**{**WORKLOAD, **job.workload}),
        device="cpu", processes_per_node=layout.gpus, learning_rate=LEARNING_RATE,
    )  # fmt: skip
    with planted(job.fault):
        training = train.build(spec, place_of(layout, torch.device("cpu")), enter=lambda _: None)
        reports = [train.train_step(training, step) for step in range(STEPS)]
    return [(report.loss, report.gradient_norm) for report in reports]


@contextlib.contextmanager
def planted(fault: str) -> Iterator[None]:
    """Make the worker wrong in one place."""
    nothing = mock.Mock()
    targets = {
        "": contextlib.nullcontext(),
        "gradients of copies not summed": mock.patch.object(gradients, "sum_over_copies", nothing),
        "gradients of tied copies not summed": mock.patch.object(gradients, "sum_over_tied", nothing),
        "partial gradients not completed": mock.patch.object(gradients, "complete_partial_gradients", nothing),
        "sharded gradients averaged": mock.patch.object(parallelize, "_sum_gradients", nothing),
        "gradients of the last micro-batch alone": mock.patch.object(train, "_accumulate", _last_alone),
        "gradients scaled by 1.01": mock.patch.object(gradients, "complete_partial_gradients", _scale),
    }
    with targets[fault]:
        yield


_accumulate = train._accumulate


def _last_alone(training: train.Training, batch: train.Batch) -> list[torch.Tensor]:
    losses = _accumulate(training, batch)
    size = training.spec.layout.micro_batch_size
    training.optimizer.zero_grad()
    _accumulate(training, train.Batch(tokens=batch.tokens[-size:], labels=batch.labels[-size:]))
    return losses


def _scale(stages: list[train.Stage]) -> None:
    for stage in stages:
        for parameter in stage.parameters():
            parameter.grad.mul_(1.01)


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    jobs = [Job(**job) for job in json.loads(Path(sys.argv[1]).read_text())]
    curves = {job.name: curve(job) for job in jobs}
    if dist.get_rank() == 0:
        Path(sys.argv[2]).write_text(json.dumps(curves))
    dist.barrier()
    os._exit(0)


def read_curves(path: Path) -> dict[str, Curve]:
    return {name: [(loss, norm) for loss, norm in steps] for name, steps in json.loads(path.read_text()).items()}


def as_json(jobs: list[Job]) -> str:
    return json.dumps([asdict(job) for job in jobs])


if __name__ == "__main__":
    main()
