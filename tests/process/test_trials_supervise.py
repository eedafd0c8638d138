"""One process without torchrun, for speed: each way to end is told apart, and nothing is left running."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.spec.outcome import Failed, Measured, Status, TrialResult
from autotune.trials.supervise import supervise
from tests.process.remains import Remains, leaving_nothing, recorded_pids_alive

pytestmark = pytest.mark.process


@pytest.fixture
def remains() -> Iterator[Remains]:
    with leaving_nothing() as remains:
        yield remains


def run(module: str, folder: Path, remains: Remains, *, time_limit_s: float = 30) -> TrialResult:
    command = [sys.executable, "-m", f"fake_workers.{module}", "trial", "--folder", str(folder)]
    python = Path(sys.executable)
    result = supervise(command, folder, python=python, environment=remains.environment, time_limit_s=time_limit_s)
    assert recorded_pids_alive(folder) == []
    return result


def test_a_trial_that_ends_well_is_measured(tmp_path, remains):
    got = run("good", tmp_path, remains)

    assert isinstance(got, Measured)
    assert got.step_times_s == (0.2, 0.1, 0.3)
    assert got.step_time_s == 0.2


def test_a_hang_ends_at_the_time_limit_and_names_the_last_phase(tmp_path, remains):
    began = time.monotonic()

    got = run("hang", tmp_path, remains, time_limit_s=1)

    assert got == Failed(status=Status.TIMEOUT, evidence="no result after 1 s; last phase warm-up step 1 (rank-0)")
    assert time.monotonic() - began < 1 + 5


def test_a_finished_run_that_hangs_in_tear_down_counts_and_costs_a_short_grace(tmp_path, remains):
    began = time.monotonic()

    got = run("hanging_tear_down", tmp_path, remains, time_limit_s=60)

    assert isinstance(got, Measured)
    # 3 s of grace, 2 s for SIGTERM, start-up and clean-up.
    assert time.monotonic() - began < 8


def test_a_crash_shows_the_exit_code_and_the_last_line_of_stderr(tmp_path, remains):
    got = run("crash", tmp_path, remains)

    assert got == Failed(
        status=Status.CRASH,
        evidence="the launcher ended with exit code 1: RuntimeError: the third layer is missing",
    )


def test_a_process_killed_from_outside_points_at_the_memory_of_the_host(tmp_path, remains):
    got = run("killed", tmp_path, remains)

    assert got == Failed(
        status=Status.CRASH,
        evidence="the launcher: killed by SIGKILL (exit code -9); most likely the host ran out of memory",
    )


def test_a_rank_that_writes_garbage_is_told_and_ended(tmp_path, remains):
    began = time.monotonic()

    got = run("garbage_rank", tmp_path, remains)

    assert isinstance(got, Failed)
    assert got.status is Status.GARBAGE
    assert got.evidence.startswith("rank-0: it failed, but its rank-0.json cannot be read")
    assert time.monotonic() - began < 5


def test_a_result_that_nobody_can_read_is_garbage(tmp_path, remains):
    got = run("garbage_result", tmp_path, remains)

    assert isinstance(got, Failed)
    assert got.status is Status.GARBAGE
    assert got.evidence.startswith("result.json cannot be read")


def test_exit_code_0_without_a_result_is_no_success(tmp_path, remains):
    got = run("silent", tmp_path, remains)

    assert got == Failed(status=Status.NO_RESULT, evidence="the launcher ended with exit code 0 and left no result")


def test_an_out_of_memory_that_is_written_after_the_crash_it_caused_is_still_seen(tmp_path, remains):
    got = run("late_out_of_memory", tmp_path, remains)

    assert got == Failed(status=Status.OOM, evidence="rank-3: tried to allocate 2.0 GiB")
