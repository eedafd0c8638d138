"""This process's surroundings, read once and handed to the workflow."""

import os
import shlex
import sys
from pathlib import Path

from autotune.workflow.problem import Host


def this_host() -> Host:
    """The interpreter, environment, core count and results folder of this process."""
    return Host(
        python=Path(sys.executable),
        environment=dict(os.environ),
        results=Path("results"),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    )


def this_command() -> str:
    """The command line as it can be typed again."""
    return shlex.join(["autotune", *sys.argv[1:]])
