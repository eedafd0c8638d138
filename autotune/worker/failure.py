"""What a rank leaves in the trial's folder besides the result: who it is, what it does, and how it failed.

rank-R.pid, rank-R.phase, rank-R.json. Loads no torch, so that a rank can write itself down before that takes seconds.
"""

import os
import re
import resource
import sys
import time
import traceback
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from autotune.worker.files import write_atomically, write_json

FailureStatus = Literal["out-of-memory", "crash", "invalid"]

_CPU_OUT_OF_MEMORY = "can't allocate memory"
_BYTES_ASKED = re.compile(r"tried to allocate ([0-9.]+ ?[A-Za-z]+)", re.IGNORECASE)
_FOLLOWING_GRACE_S = 0.5


class UnsupportedTrialError(Exception):
    """The worker cannot run this layout, model or workload. Holds every reason."""

    def __init__(self, reasons: list[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(reasons))


class RankJournal:
    """One rank's files. As a context it writes down a failure and ends the process at once, without any tear-down.

    A tear-down after a failure waits for ranks that will never come. finished: set when the result is on disk; what
    goes wrong after that changes nothing.
    """

    def __init__(self, folder: Path, rank: int) -> None:
        self._folder = folder
        self._rank = rank
        self.phase = "start"
        self.memory_limit_bytes: int | None = None
        self.finished = False

    def record_process(self) -> None:
        """Write rank-R.pid: who must be ended if nobody else is left to do it."""
        stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
        # Field 2 is the command in parentheses and may hold blanks and parentheses itself, so count from its end.
        start_time = int(stat.rpartition(")")[2].split()[19])
        record = {"pid": os.getpid(), "start_time": start_time}
        write_json(self._folder / f"rank-{self._rank}.pid", record)

    def enter(self, phase: str) -> None:
        """Begin a phase that is written to rank-R.phase, so that a rank that hangs is seen where it hangs."""
        self.phase = phase
        write_atomically(self._folder / f"rank-{self._rank}.phase", phase)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        _lift_memory_limit()
        if not self.finished:
            self._write_failure(error)
            traceback.print_exception(error, file=sys.stderr)
        sys.stderr.flush()
        os._exit(0 if self.finished else 1)

    def _write_failure(self, error: BaseException) -> None:
        status, message = describe(error)
        if status == "out-of-memory" and self.memory_limit_bytes is not None:
            message += f", limit {self.memory_limit_bytes} bytes"
        if status == "crash" and is_lost_peer(error):
            # Another rank went first; let it say why before this one does.
            time.sleep(_FOLLOWING_GRACE_S)
        document = {"status": status, "phase": self.phase, "message": message}
        write_json(self._folder / f"rank-{self._rank}.json", document)


def _lift_memory_limit() -> None:
    """So that there is memory to say what went wrong."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def describe(error: BaseException) -> tuple[FailureStatus, str]:
    """The status that the error means and one line about it.

    torch's pipeline wraps what went wrong in a stage, so the causes of an error are looked at too.
    """
    for cause in _causes(error):
        if isinstance(cause, UnsupportedTrialError):
            return "invalid", _one_line(str(cause))
        if _is_out_of_memory(cause):
            return "out-of-memory", _memory_message(cause)
    return "crash", f"{type(error).__name__}: {_one_line(str(error))}"


def is_lost_peer(error: BaseException) -> bool:
    """Whether the error only says that another rank went away."""
    words = " ".join(str(cause) for cause in _causes(error)).lower()
    return "connection closed by peer" in words or "connection reset by peer" in words


def _causes(error: BaseException) -> list[BaseException]:
    causes: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in causes:
        causes.append(following)
        following = following.__cause__ or following.__context__
    return causes


def _is_out_of_memory(error: BaseException) -> bool:
    # torch.OutOfMemoryError by its name, since torch may not be loaded yet.
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and _CPU_OUT_OF_MEMORY in str(error)


def _memory_message(error: BaseException) -> str:
    asked = _BYTES_ASKED.search(str(error))
    if asked is None:
        return f"{type(error).__name__}: {_one_line(str(error))}"
    return f"tried to allocate {asked.group(1)}"


def _one_line(text: str, limit: int = 300) -> str:
    words = " ".join(text.split())
    return words if len(words) <= limit else f"{words[: limit - 1]}…"
