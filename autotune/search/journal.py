"""The study's journal on disk: made whole after a kill, opened at once, and cleared of trials that nobody runs.

The caller holds the run's lock, so no other process writes the journal while we repair it, and any lock of Optuna's
own that is there belongs to a process that is gone.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from autotune.errors import EnvironmentFaultError, InputError


def open_storage(path: Path) -> JournalStorage:
    """Repair the journal at `path` (made if it is missing) and open it.

    Raises InputError if whole lines of it are not a journal, EnvironmentFaultError if it cannot be read or written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_stale_locks(path)
        repair_journal(path)
        with quiet_optuna():
            # A lock file, not the default symbolic link: a link with a relative target dangles, and waiting for a
            # dangling one spins without end.
            return JournalStorage(JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path))))
    except OSError as error:
        msg = f"{path}: the journal cannot be opened ({error.strerror}); give another --out"
        raise EnvironmentFaultError(msg) from error
    except (ValueError, KeyError, TypeError, IndexError, AssertionError) as error:
        message = f"is not a journal of Optuna ({error!r}); start the run over with --fresh, or give another --out"
        raise InputError.one(message, where=str(path)) from error


def repair_journal(path: Path) -> int:
    """Cut the journal before its first line that is torn or garbage; returns how many bytes went.

    Optuna refuses to open a journal with such a line, even at the end, where a kill or a power cut leaves one.
    """
    if not path.exists():
        return 0
    data = path.read_bytes()
    kept_bytes = 0
    for line in data.split(b"\n")[:-1]:  # what follows the last line end is torn
        if not _is_operation(line):
            break
        kept_bytes += len(line) + 1
    if kept_bytes < len(data):
        with path.open("r+b") as file:
            file.truncate(kept_bytes)
            os.fsync(file.fileno())
    return len(data) - kept_bytes


def _is_operation(line: bytes) -> bool:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and isinstance(record.get("op_code"), int) and "worker_id" in record


def remove_stale_locks(path: Path) -> None:
    """Delete the lock beside the journal, link or file, and what a kill in the middle of its release left.

    Optuna waits 30 s before it takes over a lock whose owner is gone.
    """
    lock_name = f"{path.name}.lock"
    for entry in path.parent.iterdir():
        name = entry.name
        if name == lock_name or (name.startswith(lock_name) and name.endswith(".rename")):
            entry.unlink(missing_ok=True)


def sweep_running(study: Study) -> list[FrozenTrial]:
    """Tell FAIL for every trial that is still marked as running; returns them as they were."""
    stale = study.get_trials(deepcopy=True, states=(TrialState.RUNNING,))
    for trial in stale:
        study.tell(trial.number, state=TrialState.FAIL)
    return stale


@contextmanager
def writing_journal() -> Iterator[None]:
    """What keeps Optuna from writing (no space left, no permission) is a fault of the environment, said as such."""
    try:
        yield
    except OSError as error:
        place = error.filename or "the run's journal"
        msg = f"{place}: cannot be written ({error.strerror}); make room or permit it, then start the command again"
        raise EnvironmentFaultError(msg) from error


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Keep Optuna's progress lines off stderr; its warnings stay."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, optuna.logging.WARNING))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
