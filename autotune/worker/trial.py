"""One rank of a trial: joins the others, builds its part of the model, measures; rank 0 leaves result.json."""

import json
import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from autotune.spec.load import from_json, to_json
from autotune.spec.outcome import TrialSpec
from autotune.worker.failure import RankJournal, UnsupportedTrialError
from autotune.worker.files import write_json
from autotune.worker.machine import cores, local_processes
from autotune.worker.measure import measure
from autotune.worker.memory import limit_memory, status_bytes
from autotune.worker.places import place_of
from autotune.worker.support import not_this_trial
from autotune.worker.train import build

COLLECTIVE_TIMEOUT = timedelta(minutes=2)
"""How long a collective waits for a rank. Whoever watches the trial ends it long before; torch's own 10 or 30 minutes
are for nobody."""


def run_trial(folder: Path, journal: RankJournal) -> None:
    """Run this rank to its end. Raises whatever goes wrong; `journal` writes it down and ends the process."""
    journal.enter("init")
    spec = from_json(TrialSpec, json.loads((folder / "trial.json").read_bytes()), where="trial.json")
    reasons = not_this_trial(spec)
    if reasons:
        raise UnsupportedTrialError(reasons)
    device = _device(spec)
    torch.set_num_threads(max(1, cores() // local_processes()))
    if device.type == "cuda":
        dist.init_process_group("nccl", timeout=COLLECTIVE_TIMEOUT, device_id=device)
    else:
        dist.init_process_group("gloo", timeout=COLLECTIVE_TIMEOUT)
    place = place_of(spec.layout, device)
    _load_libraries(device)
    resident_before_bytes = status_bytes("VmRSS")
    if spec.memory_limit_bytes is not None:
        limit_memory(device, spec.memory_limit_bytes)
        journal.memory_limit_bytes = spec.memory_limit_bytes
    journal.enter("model")
    training = build(spec, place, enter=lambda phase: setattr(journal, "phase", phase))
    journal.enter("steps")
    measured = measure(training, resident_before_bytes=resident_before_bytes)
    if measured is not None:
        write_json(folder / "result.json", to_json(measured))
    journal.finished = True
    dist.barrier()  # nobody leaves, and by that breaks another's connection, before the result is on disk


def _device(spec: TrialSpec) -> torch.device:
    if spec.device == "cpu":
        return torch.device("cpu")
    local_rank, count = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if local_rank >= count:
        raise UnsupportedTrialError([f"rank {local_rank} of this machine needs a GPU of its own, but it has {count}"])
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)


def _load_libraries(device: torch.device) -> None:
    """Start the threads and load the libraries that the first product and the first collective bring."""
    square = torch.ones(64, 64, device=device)
    product = square @ square
    dist.all_reduce(product)
