"""check(): one layout. All broken rules at once; or memory and time by part, and a verdict."""

from collections.abc import Mapping
from dataclasses import dataclass

from autotune.cost.estimate import estimate
from autotune.cost.feasibility import verdict_codes
from autotune.cost.parameters import active_parameters, total_parameters
from autotune.cost.profile import Factors
from autotune.errors import Fault, InputError
from autotune.report.describe import describe, describe_invalid
from autotune.report.ranked import RankedLayout
from autotune.report.scored import ScoredTable
from autotune.space.arithmetic_rules import COMMON_RULES
from autotune.space.neighbours import repairs
from autotune.space.resolve import ResolvedLayout, idle_gpus_note, resolve_layout
from autotune.space.rules import broken_rules
from autotune.spec.axes import AxisValue
from autotune.spec.axis_text import parse_axis_value
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.layout_file import read_layout
from autotune.spec.workload import Problem
from autotune.workflow.problem import Host, ProblemRequest, Resolved, attempt, resolve


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckRequest:
    """layout: a file or a key, None for none; axes: single values by axis name as text, which win over it."""

    problem: ProblemRequest
    layout: str | None
    axes: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckAnswer:
    """notes: how open axes were filled in; warnings: idle GPUs; repairs: legal layouts near an invalid one."""

    ranked: RankedLayout
    problem: Problem
    engine: str
    parameters: int
    active_parameters: int
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    repairs: tuple[Layout, ...]


def check(request: CheckRequest, host: Host) -> CheckAnswer:
    """Is it legal, does it fit, how fast is it? Raises InputError with all faults."""
    faults: list[Fault] = []
    given = attempt(faults, lambda: _given(request))
    resolved = attempt(faults, lambda: resolve(request.problem, host))
    if faults or given is None or resolved is None:
        raise InputError(faults)
    problem, engine = resolved.problem, resolved.engine
    layout = resolve_layout(given, engine.defaults, problem)
    table = LayoutTable.of([layout.layout])
    rules = (*COMMON_RULES, *engine.rules)
    broken = broken_rules(table, 0, problem, rules)
    idle = idle_gpus_note(layout.layout, problem)
    if broken:
        ranked = describe_invalid(layout.layout, layout.origins, broken, limit_bytes=resolved.limit_bytes)
        nearest = repairs(layout.layout, problem, rules, schedules=engine.schedules)
    else:
        ranked, nearest = _scored(table, layout, resolved), ()
    return CheckAnswer(
        ranked=ranked,
        problem=problem,
        engine=engine.name,
        parameters=total_parameters(problem.model),
        active_parameters=active_parameters(problem.model),
        notes=layout.notes,
        warnings=(idle,) if idle else (),
        repairs=nearest,
    )


def _scored(table: LayoutTable, layout: ResolvedLayout, resolved: Resolved) -> RankedLayout:
    """The same pipe as `tune`, with a table of one row."""
    problem = resolved.problem
    profile = resolved.engine.memory_on(problem.cluster.gpu.device)
    estimates = estimate(table, problem, profile, Factors())
    scored = ScoredTable(
        table=table,
        estimates=estimates,
        verdicts=verdict_codes(estimates, profile, resolved.limit_bytes, problem),
        problem=problem,
        profile=profile,
        limit_bytes=resolved.limit_bytes,
    )
    return describe(scored, 0, layout.origins)


def _given(request: CheckRequest) -> dict[str, AxisValue]:
    faults: list[Fault] = []
    given = attempt(faults, lambda: read_layout(request.layout) if request.layout else {}) or {}
    for name, text in request.axes.items():
        value = attempt(faults, lambda name=name, text=text: parse_axis_value(name, text))  # type: ignore[misc]
        if value is not None:
            given[name] = value
    if faults:
        raise InputError(faults)
    return given
