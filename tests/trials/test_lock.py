"""The run lock: one live holder, a stale one is taken over, by one process only."""

import fcntl
import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from autotune.errors import EnvironmentFaultError
from autotune.trials.lock import RunLock
from autotune.trials.processes import identify

HOLD = """
import sys
from pathlib import Path
from autotune.trials.lock import RunLock
with RunLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def start_holder(path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    return holder


def write_record(path, *, pid, start_time, host=None):
    path.write_text(json.dumps({"pid": pid, "start_time": start_time, "host": host or socket.gethostname()}))


def test_a_live_holder_is_named_and_the_lock_is_free_after_it_leaves(tmp_path):
    path = tmp_path / "run" / "lock"
    with start_holder(path) as holder:
        with pytest.raises(EnvironmentFaultError, match=f"process {holder.pid} on ") as caught, RunLock(path):
            pass
        holder.stdin.close()
    assert caught.value.exit_code == 3
    assert not path.exists()

    with RunLock(path):
        assert json.loads(path.read_text())["pid"] == os.getpid()
    assert not path.exists()


def test_a_holder_that_was_killed_is_replaced_at_once(tmp_path):
    path = tmp_path / "lock"
    with start_holder(path) as holder:
        holder.kill()
    assert path.exists()

    with RunLock(path):
        assert json.loads(path.read_text())["pid"] == os.getpid()


def test_a_pid_that_now_belongs_to_another_process_holds_nothing(tmp_path):
    path = tmp_path / "lock"
    parent = identify(os.getppid())
    write_record(path, pid=parent.pid, start_time=parent.start_time - 1)

    with RunLock(path):
        assert json.loads(path.read_text())["pid"] == os.getpid()

    write_record(path, pid=parent.pid, start_time=parent.start_time)
    with pytest.raises(EnvironmentFaultError), RunLock(path):
        pass


def test_a_record_of_another_host_is_not_judged(tmp_path):
    path = tmp_path / "lock"
    write_record(path, pid=1, start_time=-1, host="elsewhere")

    with (
        pytest.raises(EnvironmentFaultError, match=f"process 1 on elsewhere .*if it is gone, delete {path}"),
        RunLock(path),
    ):
        pass


@pytest.mark.parametrize("content", ["", '{"pid": 12', "[]", '{"pid": "x"}'])
def test_a_torn_record_is_of_a_dead_process(tmp_path, content):
    path = tmp_path / "lock"
    path.write_text(content)

    with RunLock(path):
        assert json.loads(path.read_text())["pid"] == os.getpid()


def test_one_process_cannot_hold_a_run_twice(tmp_path):
    with RunLock(tmp_path / "lock"):
        with pytest.raises(EnvironmentFaultError), RunLock(tmp_path / "lock"):
            pass
        assert (tmp_path / "lock").exists()


def test_the_lock_of_a_later_holder_is_not_removed(tmp_path):
    path = tmp_path / "lock"
    with RunLock(path):
        write_record(path, pid=1, start_time=-1, host="elsewhere")

    assert path.exists()


def test_a_lock_file_that_a_leaver_deletes_under_our_hands_is_made_again(tmp_path, monkeypatch):
    path, flock, calls = tmp_path / "lock", fcntl.flock, []

    def delete_first(descriptor, operation):
        if not calls:
            path.unlink()
        calls.append(operation)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", delete_first)

    with RunLock(path):
        assert json.loads(path.read_text())["pid"] == os.getpid()


def test_of_many_who_see_a_stale_lock_exactly_one_gets_it(tmp_path):
    starters, rounds = 6, 40
    path, start, end = tmp_path / "lock", Barrier(starters), Barrier(starters)

    def try_once(_: int) -> int:
        start.wait()
        try:
            with RunLock(path):
                end.wait()
                return 1
        except EnvironmentFaultError:
            end.wait()
            return 0

    with ThreadPoolExecutor(starters) as pool:
        for _ in range(rounds):
            write_record(path, pid=os.getppid(), start_time=-1)
            assert sum(pool.map(try_once, range(starters))) == 1


def test_leaving_and_entering_at_once_never_gives_two_holders(tmp_path):
    path, holders, overlaps = tmp_path / "lock", [], []

    def try_often(name: int) -> int:
        entered = 0
        for _ in range(200):
            try:
                with RunLock(path):
                    holders.append(name)
                    if len(holders) > 1:
                        overlaps.append(tuple(holders))
                    holders.remove(name)
                    entered += 1
            except EnvironmentFaultError:
                continue
        return entered

    with ThreadPoolExecutor(4) as pool:
        entered = list(pool.map(try_often, range(4)))

    assert sum(entered) > 0
    assert overlaps == []
