"""The Python API: tune, check, export. No printing: progress goes to an Observer."""

from autotune.workflow.check import CheckAnswer, CheckRequest, check
from autotune.workflow.launch import export, read_run
from autotune.workflow.plan import TuneRequest
from autotune.workflow.problem import Host, ProblemRequest
from autotune.workflow.tune import tune

__all__ = [
    "CheckAnswer", "CheckRequest", "Host", "ProblemRequest", "TuneRequest", "check", "export", "read_run", "tune",
]  # fmt: skip
