"""From a layout to launch files, or to every reason why the target cannot run it."""

from autotune.engines.protocol import Engine, LaunchFiles, Prediction
from autotune.engines.registry import ENGINES, EXPORTERS
from autotune.errors import InputError, NoAnswerError
from autotune.space.arithmetic_rules import COMMON_RULES
from autotune.space.divisors import one_of
from autotune.space.rules import Reason, broken_rules
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.reader import suggestion
from autotune.spec.workload import Problem


def write_launch_files(target: str, layout: Layout, problem: Problem, prediction: Prediction) -> LaunchFiles:
    """The files by relative path. Raises InputError for an unknown target, NoAnswerError with all reasons."""
    if target not in EXPORTERS:
        message = f"'{target}' is not known{suggestion(target, EXPORTERS)}; give {one_of(EXPORTERS)}"
        raise InputError.one(message, where="--to")
    engine = EXPORTERS[target]
    reasons = why_not_launched(engine, layout, problem)
    if reasons:
        message = f"{target} cannot run {layout.key}:\n" + "\n".join(f"- {reason.message}" for reason in reasons)
        raise NoAnswerError(message)
    return engine.write(layout, problem, prediction)


def why_not_launched(engine: Engine, layout: Layout, problem: Problem) -> tuple[Reason, ...]:
    """Every rule of arithmetic, of the engine and of its launch files that the layout breaks."""
    return (
        *_for_study_only(layout),
        *broken_rules(LayoutTable.of([layout]), 0, problem, (*COMMON_RULES, *engine.rules, *engine.launch_rules)),
    )


def launchable(schedule: str) -> bool:
    """Whether any engine runs the schedule; the others are for study."""
    return any(schedule in engine.schedules for engine in ENGINES.values())


def _for_study_only(layout: Layout) -> tuple[Reason, ...]:
    if launchable(layout.schedule):
        return ()
    runnable = list(dict.fromkeys(name for engine in ENGINES.values() for name in engine.schedules))
    message = (
        f"schedule {layout.schedule} is not launchable: none of the {len(ENGINES)} engines runs it; it can only be "
        f"studied; give {one_of(runnable)}"
    )
    return (Reason(code="not-launchable", axes=("schedule",), message=message),)
