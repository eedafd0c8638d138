"""Supervise: runs the command of a trial, watches the trial's folder, and ends every process at the first sign.

Nothing is learnt from the command's output but the words that explain an end without a sign.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from autotune.spec.outcome import Failed, Measured, Status, TrialResult
from autotune.trials.folder import RESULT, STDERR, STDOUT, rank_files, recorded_processes
from autotune.trials.outcome import read_outcome
from autotune.trials.processes import ProcessTree, is_running, kill_all, marked_processes

POLL_S = 0.1
SETTLE_S = 1.5
"""After a rank's failure the others get this long to report theirs: the first crash may follow from another rank's
out-of-memory. Then all are ended, SIGTERM first, which stays within the 5 s that a failed trial may cost."""
TEAR_DOWN_GRACE_S = 3.0
"""A finished run that hangs in its tear-down was seen to wait for a watchdog of 480 s (modelscope/ms-swift#7992)."""


def supervise(
    command: Sequence[str], folder: Path, *, python: Path, environment: Mapping[str, str] | None, time_limit_s: float
) -> TrialResult:
    """Run the command, which works in `folder`, to a result, a failure or the time limit. Leaves no process.

    KeyboardInterrupt passes through when every process is gone. Raises EnvironmentFaultError if the command cannot be
    started at all.
    """
    tree = ProcessTree(
        command, python=python, mark=mark_of(folder), environment=environment,
        stdout=folder / STDOUT, stderr=folder / STDERR, recorded=lambda: recorded_processes(folder),
    )  # fmt: skip
    with tree:
        timed_out = _await_sign(tree, folder, time_limit_s)
        result = read_outcome(folder, exit_code=tree.exit_code, timed_out=timed_out, time_limit_s=time_limit_s)
        if isinstance(result, Measured):
            tree.wait(TEAR_DOWN_GRACE_S)
    return result


def end_leftovers(folder: Path) -> None:
    """End what an earlier attempt in this folder left running, if its supervisor was killed."""
    mark = mark_of(folder)
    kill_all(lambda: (*marked_processes(mark), *filter(is_running, recorded_processes(folder))), where=mark)


def mark_of(folder: Path) -> str:
    """The mark of all processes of the trial in this folder."""
    return str(folder.absolute())


def _await_sign(tree: ProcessTree, folder: Path, time_limit_s: float) -> bool:
    """Return at a result, a rank's failure or the end of the command: False; at the time limit: True."""
    deadline = time.monotonic() + time_limit_s
    while not (folder / RESULT).exists() and tree.exit_code is None:
        if rank_files(folder, "json"):
            _settle(tree, folder)
            return False
        if time.monotonic() > deadline:
            return True
        time.sleep(POLL_S)
    return False


def _settle(tree: ProcessTree, folder: Path) -> None:
    until = time.monotonic() + SETTLE_S
    while time.monotonic() < until and tree.exit_code is None:
        outcome = read_outcome(folder, exit_code=None, timed_out=False)
        if isinstance(outcome, Failed) and outcome.status is Status.OOM:
            return
        tree.wait(POLL_S)
