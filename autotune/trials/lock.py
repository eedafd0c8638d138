"""RunLock: one process at a time works on a run folder. The lock names its holder by pid, start time and host."""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from autotune.errors import EnvironmentFaultError, InputError
from autotune.trials.processes import ProcessId, identify, is_running

_GUARD_PATIENCE_S = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Holder:
    pid: int
    start_time: int
    host: str


class RunLock:
    """Held inside the `with` block. Entering raises EnvironmentFaultError if a live process holds it.

    The record in the file is the lock; the kernel's lock on the same file only guards the few instructions that read
    and write the record, so that of two starters who both see a stale record one wins. A record is stale if its process
    is gone or the pid now belongs to another one. A record of another host is never judged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mine = _this_process()

    def __enter__(self) -> Self:
        """Take the lock; the run folder is made if it is missing."""
        _make_folder(self._path.parent)
        with _guarded(self._path) as descriptor:
            holder = _read(descriptor)
            if holder is not None and _may_live(holder):
                raise EnvironmentFaultError(self._why_refused(holder))
            _write(descriptor, self._mine)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._path.exists():  # the folder was deleted under us
            return
        with _guarded(self._path) as descriptor:
            # Somebody may have deleted the file by hand and another process taken the lock since.
            if _read(descriptor) in (self._mine, None):
                self._path.unlink(missing_ok=True)

    def _why_refused(self, holder: _Holder) -> str:
        what = f"{self._path.parent}: process {holder.pid} on {holder.host} is working on this run"
        if holder.host == self._mine.host:
            return f"{what}; wait for it, end it, or give another --out"
        return f"{what}, and from {self._mine.host} nobody can tell if it lives; if it is gone, delete {self._path}"


def _this_process() -> _Holder:
    me = identify(os.getpid())
    if me is None:
        msg = "/proc does not show this process; a run folder can be locked on Linux with /proc mounted only"
        raise EnvironmentFaultError(msg)
    return _Holder(pid=me.pid, start_time=me.start_time, host=socket.gethostname())


def _may_live(holder: _Holder) -> bool:
    elsewhere = holder.host != socket.gethostname()
    return elsewhere or is_running(ProcessId(pid=holder.pid, start_time=holder.start_time))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        message = "is or lies under a file, so no run can be kept there; give another --out"
        raise InputError.one(message, where=str(folder)) from error
    except OSError as error:
        msg = f"{folder}: cannot be made ({error.strerror}); give another --out"
        raise EnvironmentFaultError(msg) from error


@contextmanager
def _guarded(path: Path) -> Iterator[int]:
    """The open lock file under the kernel's lock; made if it is missing."""
    try:
        descriptor = _open_guarded(path)
        try:
            yield descriptor
        finally:
            os.close(descriptor)  # gives the kernel's lock back
    except OSError as error:
        msg = f"{path}: cannot be locked ({error.strerror}); give an --out on another file system"
        raise EnvironmentFaultError(msg) from error


def _open_guarded(path: Path) -> int:
    deadline = time.monotonic() + _GUARD_PATIENCE_S
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still_there(path, descriptor):
                return descriptor
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
        time.sleep(0.01)


def _is_still_there(path: Path, descriptor: int) -> bool:
    """Whether the file under the kernel's lock is the one that others will open: a leaver may have deleted it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _read(descriptor: int) -> _Holder | None:
    """The record; None if there is none, also if a writer died over it (it held the kernel's lock, we do now)."""
    try:
        record = json.loads(os.pread(descriptor, 4096, 0))
        return _Holder(pid=int(record["pid"]), start_time=int(record["start_time"]), host=str(record["host"]))
    except (ValueError, KeyError, TypeError):
        return None


def _write(descriptor: int, holder: _Holder) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(asdict(holder)).encode(), 0)
    os.fsync(descriptor)
