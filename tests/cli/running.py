"""Runs the command line in a process of its own, as a user does."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def autotune(
    *arguments: str, folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`autotune ARGUMENTS` in `folder`, with its output captured."""
    return subprocess.run(
        [sys.executable, "-m", "autotune", *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


QUESTION = ("--model", "llama-3-8b", "--cluster", "1x8xh100", "--seq-len", "8192", "--global-batch-size", "64")
