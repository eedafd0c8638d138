"""Runner: whatever can turn a TrialSpec into Measured or Failed."""

from pathlib import Path
from typing import Protocol

from autotune.spec.outcome import TrialResult, TrialSpec


class Runner(Protocol):
    """Runs one trial in a folder of its own and leaves nothing running."""

    def run(self, spec: TrialSpec, folder: Path, *, time_limit_s: float) -> TrialResult:
        """Run to the end, the time limit or the first out-of-memory. A failed trial is a value, never an exception.

        KeyboardInterrupt passes through, after every process of the trial is gone.
        """
