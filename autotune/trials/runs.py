"""Runs on disk: opens a run folder for new or for further work, and reads which trials it has already finished."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import EnvironmentFaultError, Fault, InputError
from autotune.spec.outcome import TrialResult
from autotune.trials.lock import RunLock
from autotune.trials.outcome import read_finished
from autotune.trials.paths import (
    Inputs,
    JsonValue,
    RunFolder,
    canonical_json,
    is_temporary,
    trial_number_and_key,
    write_atomically,
)

SCHEMA_VERSION = 1


@contextmanager
def hold_run(root: Path, inputs: Inputs, *, fresh: bool) -> Iterator[RunFolder]:
    """The run folder, locked and opened: see `RunLock` and `open_run`. This is how a command begins."""
    with RunLock(RunFolder(root=root).lock):
        yield open_run(root, inputs, fresh=fresh)


def open_run(root: Path, inputs: Inputs, *, fresh: bool) -> RunFolder:
    """The run folder at `root`: a new one, or the one that was begun there with the same inputs. Hold its lock.

    fresh: what an earlier run left there is deleted first, but only what we know to be ours.
    Raises InputError if `root` holds something else, or a run with other inputs.
    """
    run = RunFolder(root=root)
    if not run.inputs.exists():
        _refuse_foreign(run)
    elif fresh:
        _read_inputs(run)  # proves that it is ours
        _delete_run(run)
    else:
        _refuse_changed(run, _read_inputs(run), json.loads(canonical_json(inputs)))
        return run
    document = {"schema_version": SCHEMA_VERSION, "inputs": dict(inputs)}
    write_atomically(run.inputs, json.dumps(document, indent=2, sort_keys=True, allow_nan=False) + "\n")
    return run


def _refuse_foreign(run: RunFolder) -> None:
    if run.root.is_dir() and any(entry != run.lock and not is_temporary(entry) for entry in run.root.iterdir()):
        message = "is not empty and has no inputs.json, so it is not the folder of a run; give another --out"
        raise InputError.one(message, where=str(run.root))


def _read_inputs(run: RunFolder) -> dict[str, JsonValue]:
    way_out = "give another --out, or delete the folder yourself"
    try:
        document = json.loads(run.inputs.read_bytes())
    except (OSError, ValueError) as error:
        message = f"cannot be read ({error}), so nobody knows what this run was; {way_out}"
        raise InputError.one(message, where=str(run.inputs)) from error
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version != SCHEMA_VERSION or not isinstance(document.get("inputs"), dict):
        message = f"is not the inputs of a run in schema_version {SCHEMA_VERSION} (found: {version}); {way_out}"
        raise InputError.one(message, where=str(run.inputs))
    inputs: dict[str, JsonValue] = document["inputs"]
    return inputs


def _refuse_changed(run: RunFolder, old: JsonValue, new: JsonValue) -> None:
    where = str(run.inputs)
    faults = [
        Fault(where=where, key=key, message=f"was {before} when the run began and is {after} now")
        for key, before, after in _differences("", old, new)
    ]
    if faults:
        way_out = "the run was begun with other inputs; start it over with --fresh, or give another --out"
        raise InputError([*faults, Fault(where=str(run.root), message=way_out)])


def _differences(key: str, old: JsonValue, new: JsonValue) -> Iterator[tuple[str, str, str]]:
    """Dotted key, value before and value now of every leaf that differs."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            inner = f"{key}.{name}" if key else name
            if name not in old:
                yield inner, "absent", json.dumps(new[name])
            elif name not in new:
                yield inner, json.dumps(old[name]), "absent"
            else:
                yield from _differences(inner, old[name], new[name])
    elif json.dumps(old, sort_keys=True) != json.dumps(new, sort_keys=True):  # 1, 1.0 and true are equal in Python
        yield key, json.dumps(old), json.dumps(new)


def _delete_run(run: RunFolder) -> None:
    """Delete what `tune` writes; what somebody else put beside it stays. inputs.json, the proof, goes last."""
    trials = [path for path in _entries(run.trials) if trial_number_and_key(path) is not None]
    temporaries = [path for path in _entries(run.root) if is_temporary(path)]
    journal_locks = [path for path in _entries(run.root) if path.name.startswith(f"{run.journal.name}.")]
    try:
        for folder in (*trials, run.launch):
            if folder.is_dir() and not folder.is_symlink():
                shutil.rmtree(folder)
        for file in (
            *temporaries,
            *journal_locks,
            run.machine,
            run.table,
            run.journal,
            run.report_md,
            run.report_json,
            run.inputs,
        ):
            file.unlink(missing_ok=True)
    except OSError as error:
        msg = f"{error.filename or run.root}: cannot be deleted ({error.strerror}); give another --out"
        raise EnvironmentFaultError(msg) from error


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


@dataclass(frozen=True, kw_only=True, slots=True)
class FinishedTrial:
    """A trial that need not run again. number and key are those of its folder."""

    number: int
    key: str
    folder: Path
    result: TrialResult


def read_trials(run: RunFolder) -> tuple[FinishedTrial, ...]:
    """The finished trials of a run, by number. A half-finished one is left out: it is run again."""
    finished = []
    for folder in _entries(run.trials):
        name = trial_number_and_key(folder)
        result = read_finished(folder) if name is not None else None
        if name is not None and result is not None:
            finished.append(FinishedTrial(number=name[0], key=name[1], folder=folder, result=result))
    return tuple(sorted(finished, key=lambda trial: trial.number))
