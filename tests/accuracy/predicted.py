"""Predictions with numbers of the test's own beside a real run."""

from dataclasses import replace
from pathlib import Path

from autotune.accuracy.predict import profile_of
from autotune.accuracy.prediction import PredictedRun
from autotune.cost.profile import Factors
from autotune.spec.measured import MeasuredRun
from autotune.units import GIB
from tests.accuracy.runs import runs_of


def base_run(folder: Path, **changes: str) -> MeasuredRun:
    """A run of the shared row."""
    (run,) = runs_of(folder, changes)
    return run


def predicted(
    run: MeasuredRun,
    *,
    step_time_s: float = 1.0,
    inside_gib: float = 10.0,
    outside_gib: float = 2.0,
    limit_gib: float = 80.0,
    fullest_stage: int = 0,
    **changes: object,
) -> PredictedRun:
    """The run with some of its fields changed, and a prediction that consists of one part each."""
    changed = replace(run, **changes)  # type: ignore[arg-type]
    return PredictedRun(
        run=changed,
        engine="megatron-lm",
        profile=profile_of(changed),
        factors=Factors(),
        time_parts_s={"forward": step_time_s},
        memory_parts_bytes={"activations": inside_gib * GIB, "outside": outside_gib * GIB},
        fullest_stage=fullest_stage,
        limit_bytes=limit_gib * GIB,
    )
