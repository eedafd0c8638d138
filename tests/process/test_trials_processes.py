"""Process trees: who is a member, who is not, and what is ended."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autotune.errors import EnvironmentFaultError
from autotune.trials import processes
from autotune.trials.processes import (
    ProcessId,
    ProcessTree,
    identify,
    interrupts_held,
    is_running,
    kill_all,
    marked_processes,
)

pytestmark = pytest.mark.process
PYTHON = Path(sys.executable)


def tree(tmp_path, *command, recorded=tuple):
    return ProcessTree(
        command, python=PYTHON, mark=str(tmp_path), environment=None, stdout=tmp_path / "out", stderr=tmp_path / "err",
        recorded=recorded,
    )  # fmt: skip


def wait_until(holds):
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_process_is_known_by_pid_and_start_time():
    me = identify(os.getpid())

    assert is_running(me)
    assert not is_running(ProcessId(pid=me.pid, start_time=me.start_time - 1))


def test_a_process_that_ended_is_not_running_although_nobody_took_its_exit_status():
    with subprocess.Popen(["true"]) as process:
        wait_until(lambda: "Z" in Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0])
        assert identify(process.pid) is None


def test_the_command_is_what_was_asked_and_its_exit_code_comes_through(tmp_path):
    with tree(tmp_path, "sh", "-c", "echo said; echo cried >&2; exit 7") as running:
        running.wait(10)
        assert running.exit_code == 7

    assert (tmp_path / "out").read_text() == "said\n"
    assert (tmp_path / "err").read_text() == "cried\n"


def test_children_in_sessions_of_their_own_are_members_and_end_with_the_tree(tmp_path):
    with tree(tmp_path, "sh", "-c", "setsid sleep 300 & setsid sh -c 'sleep 300; true' & exit 0") as running:
        running.wait(10)
        wait_until(lambda: len(running.members()) >= 3)

    assert marked_processes(str(tmp_path)) == ()


def test_a_process_that_lost_the_mark_is_ended_if_it_wrote_itself_down(tmp_path):
    unmarked = []
    command = ["sh", "-c", "env -i setsid sleep 300 & echo $!; wait"]
    with tree(tmp_path, *command, recorded=lambda: unmarked) as running:
        wait_until(lambda: (tmp_path / "out").read_text().endswith("\n"))
        pid = int((tmp_path / "out").read_text())
        wait_until(lambda: pid not in {member.pid for member in running.members()})
        unmarked.append(identify(pid))
        assert unmarked[0] in running.members()

    assert not is_running(unmarked[0])


def test_a_recorded_pid_that_was_given_to_another_process_is_spared(tmp_path):
    with subprocess.Popen(["sleep", "300"]) as bystander:
        real = identify(bystander.pid)
        stale = ProcessId(pid=real.pid, start_time=real.start_time - 1)
        with tree(tmp_path, "true", recorded=lambda: [stale]):
            pass
        assert bystander.poll() is None
        bystander.kill()


def test_an_exception_in_the_block_ends_the_tree_and_passes_through(tmp_path):
    def fail_inside():
        with tree(tmp_path, "sleep", "300") as running:
            wait_until(running.members)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()

    assert marked_processes(str(tmp_path)) == ()


def test_an_interpreter_that_is_not_there_is_a_fault_of_the_environment(tmp_path):
    broken = ProcessTree(
        ["true"], python=Path("/nowhere/python"), mark=str(tmp_path), environment={}, stdout=tmp_path / "out",
        stderr=tmp_path / "err",
    )  # fmt: skip
    with pytest.raises(EnvironmentFaultError, match="/nowhere/python cannot be started"), broken:
        pass


def test_what_survives_sigkill_is_named(monkeypatch):
    monkeypatch.setattr("autotune.trials.processes.KILL_PATIENCE_S", 0.1)
    stuck = ProcessId(pid=12345678, start_time=1)

    with pytest.raises(EnvironmentFaultError, match=r"trial-7: process 12345678 is still there"):
        kill_all(lambda: [stuck], where="trial-7")


def test_an_interrupt_in_a_held_block_comes_after_it():
    done = []

    def clean_up():
        with interrupts_held():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            done.append("the clean-up")

    with pytest.raises(KeyboardInterrupt):
        clean_up()

    assert done == ["the clean-up"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_leash_ends_a_command_whose_parent_is_already_gone():
    leash = Path(processes.__file__).with_name("leash.py")
    nobody = "1" if os.getpid() != 1 else "2"

    done = subprocess.run([sys.executable, leash, nobody, "echo", "ran"], capture_output=True, check=False)

    assert done.returncode == 128 + signal.SIGTERM
    assert done.stdout == b""
