"""Finds what a test left running, by means of its own: a marker in the environment and the pids that ranks wrote."""

import json
import os
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

MARKER = "AUTOTUNE_TEST"
FAKE_WORKERS = Path(__file__).parent


@dataclass(frozen=True)
class Remains:
    """environment: for the processes under test; it marks them all."""

    environment: dict[str, str]

    @classmethod
    def fresh(cls) -> "Remains":
        return cls({**os.environ, "PYTHONPATH": str(FAKE_WORKERS), MARKER: uuid.uuid4().hex})

    def running(self) -> list[str]:
        """Command lines of processes that carry the marker."""
        return [_command_line(pid) for pid in self._pids()]

    def _pids(self) -> list[int]:
        wanted = f"{MARKER}={self.environment[MARKER]}".encode()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
            except OSError:
                continue
        return found

    def end(self) -> None:
        """So that a test that fails does not burden the next one."""
        for pid in self._pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait_until_gone(self, limit_s: float) -> list[str]:
        """What is still running after limit_s."""
        deadline = time.monotonic() + limit_s
        while self.running() and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.running()


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return f"{pid}, gone since"


@contextmanager
def leaving_nothing() -> Iterator[Remains]:
    """Fails if a process that was started in the block outlives it."""
    remains = Remains.fresh()
    try:
        yield remains
        assert remains.running() == []
    finally:
        remains.end()


def recorded_pids_alive(folder: Path) -> list[int]:
    pids = [json.loads(path.read_text())["pid"] for path in folder.glob("rank-*.pid")]
    assert pids, "no rank has written itself down, so this proves nothing"
    return [pid for pid in pids if _is_alive(pid)]


def _is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
