"""Probe: measures this machine in a process of its own, since torch is loaded in the worker alone."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from autotune.errors import EnvironmentFaultError, InputError
from autotune.spec.load import from_json
from autotune.spec.probe import MachineProbe
from autotune.trials.folder import STDERR, STDOUT, one_line, read_launcher_report
from autotune.trials.processes import ProcessTree
from autotune.trials.supervise import mark_of

_ASK_VERSION = "import importlib.metadata as metadata; print(metadata.version('torch'))"


def torch_available(python: Path) -> str | None:
    """The version of torch that this interpreter would import, e.g. "2.11.0"; None without one. Loads no torch."""
    try:
        done = subprocess.run(
            [str(python), "-c", _ASK_VERSION], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def require_torch(python: Path) -> str:
    """The version of torch, or EnvironmentFaultError with the way out."""
    version = torch_available(python)
    if version is None:
        msg = (
            f"{python} has no torch, which real runs and the measurement of --cluster local need: "
            "pip install 'autotune[trials]', or name a cluster and ask with --trials 0"
        )
        raise EnvironmentFaultError(msg)
    return version


def probe_machine(
    python: Path,
    *,
    gpus: int | None,
    folder: Path,
    time_limit_s: float = 120,
    environment: Mapping[str, str] | None = None,
    module: str = "autotune.worker",
) -> MachineProbe:
    """Measure this machine, in a folder of its own under `folder` that stays only if that fails. Leaves no process.

    gpus: devices, or processes that stand in for them, to use; None: all. environment: the whole one of the probe,
    None: inherited. Raises EnvironmentFaultError without torch, without an answer in time or without a sound one.
    """
    require_torch(python)
    own_folder = _make_folder(folder)
    answer = own_folder / "probe.json"
    command = [str(python), "-m", module, "probe", "--out", str(answer)]
    command += [] if gpus is None else ["--gpus", str(gpus)]
    tree = ProcessTree(
        command, python=python, mark=mark_of(own_folder), environment=environment,
        stdout=own_folder / STDOUT, stderr=own_folder / STDERR,
    )  # fmt: skip
    with tree:
        tree.wait(time_limit_s)
        exit_code = tree.exit_code
    probe = _read_answer(answer, exit_code, time_limit_s)
    shutil.rmtree(own_folder, ignore_errors=True)
    return probe


def _make_folder(parent: Path) -> Path:
    try:
        parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="probe-", dir=parent.absolute()))
    except OSError as error:
        msg = f"{parent}: no folder can be made in it ({error.strerror}); give another --out"
        raise EnvironmentFaultError(msg) from error


def _read_answer(answer: Path, exit_code: int | None, time_limit_s: float) -> MachineProbe:
    if exit_code is None:
        raise EnvironmentFaultError(_no_answer(answer.parent, f"did not end within {time_limit_s:g} s"))
    if exit_code != 0 or not answer.exists():
        raise EnvironmentFaultError(_no_answer(answer.parent, f"ended with exit code {exit_code} and no answer"))
    try:
        return from_json(MachineProbe, json.loads(answer.read_bytes()), where=answer.name)
    except (ValueError, InputError) as error:
        reason = f"left a {answer.name} that cannot be read: {one_line(str(error))}"
        raise EnvironmentFaultError(_no_answer(answer.parent, reason)) from error


def _no_answer(folder: Path, what: str) -> str:
    words = read_launcher_report(folder).last_line
    said = f" (its last words: {words})" if words else ""
    return f"measuring this machine {what}{said}; see {folder / STDERR}, or describe the machine in a cluster file"
