"""Where things lie: the run folder and its trial folders, and the one atomic writer of the project."""

import errno
import hashlib
import json
import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import EnvironmentFaultError

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
Inputs = Mapping[str, JsonValue]
"""The resolved inputs of a run, as they go into inputs.json: whatever decides what is searched and measured."""

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_HASH_DIGITS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFolder:
    """One run of `tune`. A property is a path; nothing is made until something is written there."""

    root: Path

    @property
    def inputs(self) -> Path:
        """The resolved inputs."""
        return self.root / "inputs.json"

    @property
    def machine(self) -> Path:
        """What this machine was measured as, where the cluster is local."""
        return self.root / "machine.json"

    @property
    def table(self) -> Path:
        """All scored layouts."""
        return self.root / "table.npz"

    @property
    def journal(self) -> Path:
        """The study's journal."""
        return self.root / "journal.log"

    @property
    def trials(self) -> Path:
        """Holds a folder per trial."""
        return self.root / "trials"

    @property
    def report_md(self) -> Path:
        """The report to read."""
        return self.root / "report.md"

    @property
    def report_json(self) -> Path:
        """The report for scripts."""
        return self.root / "report.json"

    @property
    def launch(self) -> Path:
        """Holds the launch files of the winner."""
        return self.root / "launch"

    @property
    def lock(self) -> Path:
        """There while a process works on the run."""
        return self.root / "lock"

    def trial_folder(self, number: int, key: str) -> Path:
        """The folder of trial `number`, which runs the layout with this key."""
        return self.trials / f"{number:04d}-{key}"


def trial_number_and_key(folder: Path) -> tuple[int, str] | None:
    """The inverse of `RunFolder.trial_folder`; None for a folder with another kind of name."""
    match = re.fullmatch(r"(\d{4,})-(.+)", folder.name)
    return (int(match.group(1)), match.group(2)) if match else None


def canonical_json(value: Inputs) -> str:
    """The one text for equal inputs: keys sorted, no blanks. Tuples are lists."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def run_folder_name(inputs: Inputs) -> str:
    """E.g. "llama-3-8b-8x8xh100-gbs256-3f2a91c0", so that the same command finds its run again.

    The words come from the names of `model` and `cluster` and from `workload`, as far as the inputs have them; the end
    is the hash of all inputs.
    """
    workload = inputs.get("workload")
    sizes = workload if isinstance(workload, dict) else {}
    words = [_name_of(inputs.get("model")), _name_of(inputs.get("cluster"))]
    words += [f"{short}{sizes[key]}" for key, short in _SIZES_IN_NAME if key in sizes]
    digest = hashlib.sha256(canonical_json(inputs).encode()).hexdigest()[:_HASH_DIGITS]
    return "-".join([word for word in words if word] + [digest])


_SIZES_IN_NAME = (("sequence_length", "seq"), ("global_batch_size", "gbs"))


def _name_of(value: JsonValue) -> str:
    name = value.get("name") if isinstance(value, dict) else value
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:40] if isinstance(name, str) else ""


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write the whole file or leave what was there; missing folders are made. On the disk when this returns.

    Raises EnvironmentFaultError if the file cannot be written: the disk is full, the folder is read-only.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _write_new(temporary, data)
            temporary.replace(path)
            _flush_folder(path.parent)
        finally:
            with suppress(OSError):
                temporary.unlink()
    except OSError as error:
        raise EnvironmentFaultError(_why_not_written(path, len(data), error)) from error


def is_temporary(path: Path) -> bool:
    """Whether this is what a writer that was killed in the middle left behind."""
    return re.fullmatch(r"\..+\.\d+-[0-9a-f]{8}\.tmp", path.name) is not None


def _write_new(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _why_not_written(path: Path, size_bytes: int, error: OSError) -> str:
    if error.errno in _NO_SPACE:
        return f"{path}: no space left for {size_bytes} bytes; free some or give another --out"
    return f"{path}: cannot be written ({error.strerror}); give another --out"
