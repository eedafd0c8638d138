"""What a rank says of its own end."""

import json
import os
from pathlib import Path

import pytest
import torch

from autotune.worker.failure import RankJournal, UnsupportedTrialError, describe


def wrapped(cause: BaseException) -> BaseException:
    """As torch's pipeline raises what went wrong in a stage."""
    try:
        msg = "[Stage 1] failed to run forward: args: ..."
        raise RuntimeError(msg) from cause
    except RuntimeError as error:
        return error


def test_a_cpu_allocation_that_fails_is_out_of_memory_and_says_how_much_was_asked():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)

    assert describe(caught.value) == ("out-of-memory", "tried to allocate 1152921504606846976 bytes")


def test_a_gpu_allocation_that_fails_is_out_of_memory():
    message = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB"

    assert describe(torch.OutOfMemoryError(message)) == ("out-of-memory", "tried to allocate 2.00 GiB")


def test_out_of_memory_inside_a_pipeline_stage_is_still_that():
    assert describe(wrapped(MemoryError("no room")))[0] == "out-of-memory"


def test_an_unsupported_trial_is_invalid_with_every_reason():
    assert describe(UnsupportedTrialError(["tp=3", "no experts"])) == ("invalid", "tp=3; no experts")


def test_anything_else_is_a_crash_on_one_line():
    assert describe(ValueError("first\n  second")) == ("crash", "ValueError: first second")


def test_a_rank_writes_itself_and_its_phase_down(tmp_path):
    journal = RankJournal(tmp_path, rank=3)

    journal.record_process()
    journal.enter("model")

    record = json.loads((tmp_path / "rank-3.pid").read_text())
    assert record["pid"] == os.getpid()
    # field 22 of proc(5): clock ticks since the machine started, so not after now
    ticks = os.sysconf("SC_CLK_TCK") * float(Path("/proc/uptime").read_text().split()[0])
    assert 0 < record["start_time"] <= ticks + 1
    assert (tmp_path / "rank-3.phase").read_text() == "model"
    assert not list(tmp_path.glob(".*.tmp"))
