"""Processes of a trial: starts a tree of them, finds every member in /proc, and ends all of them and nobody else.

A member is known by the mark in its environment, which children inherit, or by a pid that it wrote down together with
its start time. A bare pid is never trusted: the kernel gives the number of a dead process to somebody else.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from autotune.errors import EnvironmentFaultError

MARK = "AUTOTUNE_TREE"
"""Environment variable that every process of a tree carries; its value is the folder that the tree works in."""

TERMINATE_PATIENCE_S = 2.0
"""torchrun passes SIGTERM on to its workers and is gone after 0.8-0.9 s (torch 2.13, 2 processes, 2026-12-01)."""
KILL_PATIENCE_S = 5.0
_PROC = Path("/proc")


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessId:
    """A process that cannot be mistaken for a later one with its pid. start_time: field 22 of /proc/PID/stat."""

    pid: int
    start_time: int


def identify(pid: int) -> ProcessId | None:
    """The running process with this pid; None if there is none or only its exit status is left (a zombie)."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # Field 2 is the command in parentheses and may hold blanks and parentheses itself, so count from its end.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else ProcessId(pid=pid, start_time=int(fields[19]))


def is_running(process: ProcessId) -> bool:
    """Whether this very process, and not a later one with its pid, is alive."""
    return identify(process.pid) == process


def marked_processes(mark: str) -> tuple[ProcessId, ...]:
    """Every running process that carries `mark`, this one aside."""
    wanted = f"{MARK}={mark}".encode()
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    found = (identify(pid) for pid in pids if pid != os.getpid() and wanted in _environment_of(pid))
    return tuple(process for process in found if process is not None)


def _environment_of(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # gone, or another user's
        return []


def kill_all(find: Callable[[], Iterable[ProcessId]], *, where: str) -> None:
    """SIGKILL to what `find` finds, again and again until it finds nothing.

    Raises EnvironmentFaultError, which begins with `where`, if something will not die: what is measured beside it does
    not count.
    """
    deadline = time.monotonic() + KILL_PATIENCE_S
    while members := tuple(find()):
        if time.monotonic() > deadline:
            pids = ", ".join(str(member.pid) for member in members)
            msg = (
                f"{where}: process {pids} is still there {KILL_PATIENCE_S:g} s after SIGKILL (stuck in a driver or on "
                "a file system?); what runs beside it cannot be measured, end it before the next run"
            )
            raise EnvironmentFaultError(msg)
        for member in filter(is_running, members):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(member.pid, signal.SIGKILL)
        time.sleep(0.02)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Answers a Ctrl-C only when the block is done, so that a second one cannot break off a clean-up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[FrameType | None] = []
    before = signal.signal(signal.SIGINT, lambda _, frame: held.append(frame))
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
    if held and callable(before):
        before(signal.SIGINT, held[0])


class ProcessTree:
    """A command in a session of its own, and all that descends from it. Leaving the `with` block ends every member.

    The command dies with the process that started it (see `leash`), also when that is killed by SIGKILL. recorded:
    finds members that lost the mark, by what they wrote down.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        python: Path,
        mark: str,
        environment: Mapping[str, str] | None,
        stdout: Path,
        stderr: Path,
        recorded: Callable[[], Iterable[ProcessId]] = tuple,
    ) -> None:
        """environment: the whole environment of the command; None: inherited from this process."""
        leash = str(Path(__file__).with_name("leash.py"))
        self._command = [str(python), "-IS", leash, str(os.getpid()), *command]
        self._mark = mark
        self._environment = {**(os.environ if environment is None else environment), MARK: mark}
        self._logs = (stdout, stderr)
        self._recorded = recorded
        self._launcher: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the command. Raises EnvironmentFaultError if it cannot be started."""
        try:
            with interrupts_held():
                self._start()
        except OSError as error:
            msg = f"{self._command[0]} cannot be started ({error.strerror}: {error.filename}); is that the interpreter?"
            raise EnvironmentFaultError(msg) from error
        except BaseException:
            self.end()
            raise
        return self

    def _start(self) -> None:
        stdout, stderr = self._logs
        with stdout.open("wb") as out, stderr.open("wb") as err:
            self._launcher = subprocess.Popen(
                self._command, env=self._environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                start_new_session=True,
            )  # fmt: skip

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    @property
    def exit_code(self) -> int | None:
        """Of the command itself; None while it runs. -N: ended by signal N."""
        return self._launcher.poll() if self._launcher is not None else None

    def wait(self, limit_s: float) -> None:
        """Return when the command has ended, after limit_s at the latest."""
        if self._launcher is not None:
            with suppress(subprocess.TimeoutExpired):
                self._launcher.wait(timeout=limit_s)

    def members(self) -> tuple[ProcessId, ...]:
        """Every process of the tree that still runs."""
        recorded = (process for process in self._recorded() if is_running(process))
        return tuple({*marked_processes(self._mark), *recorded})

    def end(self) -> None:
        """End every member: SIGTERM to the command's group, a short wait, then SIGKILL to whoever is left.

        torchrun's workers have sessions of their own: SIGKILL to its group alone would leave them running.
        """
        with interrupts_held():
            self._signal_group(signal.SIGTERM)
            self.wait(TERMINATE_PATIENCE_S)
            self._signal_group(signal.SIGKILL)
            kill_all(self.members, where=self._mark)
            self.wait(KILL_PATIENCE_S)  # takes the exit status, so that no zombie stays

    def _signal_group(self, number: signal.Signals) -> None:
        # Only while the leader is not reaped: until then its pid, and so the group's number, cannot be given away.
        if self._launcher is not None and self._launcher.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._launcher.pid, number)
