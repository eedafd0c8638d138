"""The link between two processes of this machine, over nccl or gloo, measured by all-reduces of two."""

import multiprocessing
import statistics
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

_SMALL_ELEMENTS = 1
_LARGE_ELEMENTS = {"cpu": 2**22, "cuda": 2**26}
_REPEATS = 20
_PATIENCE_S = 60.0
_RANKS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """bandwidth: bytes that each of two processes sends in a second of a large all-reduce; latency: of one message."""

    bandwidth_bytes_per_s: float
    latency_s: float


def measure_link(device_type: str) -> Link:
    """Start two processes and measure. Raises RuntimeError if they do not answer.

    An all-reduce of S bytes between n ranks sends 2·(n-1)/n·S from each, in 2·(n-1) messages (Thakur et al. 2005,
    section 4.5): with two ranks S bytes in 2 messages.
    """
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        receiver, sender = context.Pipe(duplex=False)
        ranks = [
            context.Process(target=_rank, args=(rank, device_type, str(Path(folder) / "store"), sender), daemon=True)
            for rank in range(_RANKS)
        ]
        for process in ranks:
            process.start()
        sender.close()
        try:
            if not receiver.poll(_PATIENCE_S):
                msg = f"two processes that talk over {_backend(device_type)} gave no answer in {_PATIENCE_S:g} s"
                raise RuntimeError(msg)
            small_s, large_s = receiver.recv()
        except EOFError as error:
            msg = f"two processes that should talk over {_backend(device_type)} ended without an answer"
            raise RuntimeError(msg) from error
        finally:
            for process in ranks:
                process.kill()
                process.join()
    size_bytes = _LARGE_ELEMENTS[device_type] * torch.float32.itemsize
    return Link(bandwidth_bytes_per_s=size_bytes / large_s, latency_s=small_s / 2)


def _backend(device_type: str) -> str:
    return "nccl" if device_type == "cuda" else "gloo"


def _rank(rank: int, device_type: str, store: str, answer: "multiprocessing.connection.Connection") -> None:
    torch.set_num_threads(1)
    device = torch.device(device_type, rank) if device_type == "cuda" else torch.device("cpu")
    if device_type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group(
        _backend(device_type),
        init_method=f"file://{store}",
        rank=rank,
        world_size=_RANKS,
        timeout=timedelta(seconds=_PATIENCE_S),
    )
    durations_s = [_all_reduce_s(elements, device) for elements in (_SMALL_ELEMENTS, _LARGE_ELEMENTS[device_type])]
    dist.barrier()
    if rank == 0:
        answer.send(durations_s)


def _all_reduce_s(elements: int, device: torch.device) -> float:
    """The median duration, after a first one that opens the connections."""
    tensor = torch.ones(elements, device=device)
    durations_s = []
    for _ in range(_REPEATS + 1):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        started_s = time.perf_counter()
        dist.all_reduce(tensor)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        durations_s.append(time.perf_counter() - started_s)
    return statistics.median(durations_s[1:])
