"""Two processes under the real torchrun: it hides exit codes and gives each worker a session of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from autotune.spec.outcome import Failed, Measured, Status
from autotune.testing import RunnerContract
from autotune.trials.torchrun import TorchrunRunner
from tests.process.fake_workers.trial import trial
from tests.process.remains import Remains, leaving_nothing, recorded_pids_alive

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(find_spec("torch") is None, reason="torchrun is part of torch, which is not installed"),
]
PYTHON = Path(sys.executable)


@pytest.fixture
def remains() -> Iterator[Remains]:
    with leaving_nothing() as remains:
        yield remains


def fake(name: str, remains: Remains) -> TorchrunRunner:
    return TorchrunRunner(python=PYTHON, environment=remains.environment, module=f"fake_workers.{name}")


class TestTorchrunRunner(RunnerContract):
    def good_runner(self):
        return fake("good", Remains.fresh())

    def failing_runner(self):
        return fake("hang", Remains.fresh())

    def trial(self):
        return trial(processes=2)


def test_all_processes_are_gone_within_5_s_of_an_out_of_memory_on_one_rank(tmp_path, remains):
    got = fake("out_of_memory", remains).run(trial(processes=2), tmp_path, time_limit_s=60)

    took_s = time.time() - (tmp_path / "rank-1.json").stat().st_mtime
    assert got == Failed(status=Status.OOM, evidence="rank-1 in forward: tried to allocate 2.0 GiB")
    assert took_s < 5
    assert recorded_pids_alive(tmp_path) == []


def test_a_rank_killed_from_outside_is_named_although_another_rank_reported_a_crash(tmp_path, remains):
    got = fake("killed", remains).run(trial(processes=2), tmp_path, time_limit_s=60)

    assert got == Failed(
        status=Status.CRASH,
        evidence="rank-1: killed by SIGKILL (exit code -9); most likely the host ran out of memory",
    )
    assert recorded_pids_alive(tmp_path) == []


def test_a_worker_that_cannot_be_imported_is_a_launch_failure_in_the_words_of_python(tmp_path, remains):
    got = fake("nowhere", remains).run(trial(processes=1), tmp_path, time_limit_s=60)

    assert got == Failed(
        status=Status.LAUNCH,
        evidence="rank-0 ended with exit code 1 before a rank had started: "
        f"{PYTHON}: No module named fake_workers.nowhere",
    )


def start_runner(folder: Path, remains: Remains) -> subprocess.Popen[bytes]:
    """A process of its own that runs a trial which hangs, both ranks up."""
    command = [sys.executable, "-m", "fake_workers.runner", "fake_workers.hang", "2", str(folder)]
    process = subprocess.Popen(command, env=remains.environment, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while len(list(folder.glob("rank-*.phase"))) < 2:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    return process


def test_ctrl_c_ends_every_process_before_it_passes_through(tmp_path, remains):
    process = start_runner(tmp_path, remains)

    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)  # an impatient user, in the middle of the clean-up
    _, stderr = process.communicate(timeout=10)

    assert remains.running() == []
    assert recorded_pids_alive(tmp_path) == []
    assert b"KeyboardInterrupt" in stderr
    assert not (tmp_path / "outcome.json").exists()


def test_what_a_killed_search_left_is_ended_before_the_trial_runs_again(tmp_path, remains):
    process = start_runner(tmp_path, remains)
    process.kill()
    process.communicate(timeout=10)
    left = [json.loads(path.read_text())["pid"] for path in tmp_path.glob("rank-*.pid")]

    again = fake("good", remains).run(trial(processes=1), tmp_path, time_limit_s=60)

    assert isinstance(again, Measured)
    assert not any(Path(f"/proc/{pid}/environ").exists() and _carries_marker(pid, remains) for pid in left)
    assert json.loads((tmp_path / "outcome.json").read_text()) == {"status": "measured"}
    assert sorted(path.name for path in tmp_path.glob("rank-*")) == ["rank-0.pid"]


def _carries_marker(pid: int, remains: Remains) -> bool:
    return os.fsencode(remains.environment["AUTOTUNE_TEST"]) in Path(f"/proc/{pid}/environ").read_bytes()


def test_a_killed_search_takes_its_trial_with_it(tmp_path, remains):
    command = [sys.executable, "-m", "fake_workers.runner", "fake_workers.sleep", "2", str(tmp_path)]
    process = subprocess.Popen(command, env=remains.environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while len(list(tmp_path.glob("rank-*.pid"))) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)

    process.kill()
    process.wait()

    assert remains.wait_until_gone(5) == []
