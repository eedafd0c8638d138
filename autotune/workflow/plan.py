"""From a TuneRequest to a Plan: everything looked up, checked and named, before anything is enumerated or written."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from autotune import __version__
from autotune.cost.feasibility import limit_bytes
from autotune.errors import EnvironmentFaultError, Fault, InputError
from autotune.progress import Observer
from autotune.space.arithmetic_rules import COMMON_RULES
from autotune.space.resolve import ResolvedLayout, resolve_layout
from autotune.space.rules import Rule, broken_rules
from autotune.spec.axes import AXIS_NAMES, AxisValue
from autotune.spec.hardware import gpu_of_device
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.layout_file import read_layout
from autotune.spec.load import from_json, read_json, to_json
from autotune.spec.local import local_cluster
from autotune.spec.probe import MachineProbe
from autotune.spec.search_space import SearchSpace, load_space, parse_axis_values
from autotune.spec.verdict import Origin
from autotune.spec.workload import Problem
from autotune.trials.paths import Inputs, JsonValue, RunFolder, write_atomically
from autotune.trials.probe import require_torch
from autotune.units import parse_seconds
from autotune.workflow.problem import Host, ProblemRequest, Resolved, attempt, measure_machine, memory_limit_of, resolve


@dataclass(frozen=True, kw_only=True, slots=True)
class TuneRequest:
    """What was asked of `tune`. axes: pins by axis name as text, e.g. {"tp": "4,8"}; timeouts as "10 min"."""

    problem: ProblemRequest
    space: str = "dense"
    axes: Mapping[str, str]
    trials: int = 0
    timeout: str | None = None
    trial_timeout: str = "10 min"
    baseline: str | None = None
    sampler: str = "cost"
    scale_down: bool = False
    out: Path | None = None
    fresh: bool = False
    seed: int = 0
    top: int = 20
    command: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A request, understood. rules: arithmetic and the engine's; timeout_s: of all trials, None for no limit."""

    request: TuneRequest
    resolved: Resolved
    space: SearchSpace
    rules: tuple[Rule, ...]
    baseline: ResolvedLayout | None
    timeout_s: float | None
    trial_timeout_s: float

    @property
    def problem(self) -> Problem:
        """The question."""
        return self.resolved.problem

    @property
    def origins(self) -> dict[str, Origin]:
        """Where the values of a searched layout come from."""
        return {name: self._origin(name) for name in AXIS_NAMES}

    def _origin(self, name: str) -> Origin:
        if name not in self.space.axes:
            return Origin.OFF
        return Origin.GIVEN if name in self.request.axes else Origin.SEARCHED


def plan(request: TuneRequest, host: Host, observer: Observer) -> Plan:
    """Understand a request.

    Raises InputError with all faults; EnvironmentFaultError where trials are asked that this machine cannot run.
    """
    faults: list[Fault] = []
    space = attempt(faults, lambda: _pinned_space(request))
    timeout_s = attempt(faults, lambda: _seconds(request.timeout, "--timeout"))
    trial_timeout_s = attempt(faults, lambda: _seconds(request.trial_timeout, "--trial-timeout"))
    given = attempt(faults, lambda: read_layout(request.baseline) if request.baseline else {})
    resolved = attempt(
        faults, lambda: resolve(request.problem, host, scale_to_local=request.scale_down, observer=observer)
    )
    if faults or space is None or resolved is None:
        raise InputError(faults)
    if request.trials > 0:
        _require_target(resolved, host, observer)
    rules = (*COMMON_RULES, *resolved.engine.rules)
    return Plan(
        request=request,
        resolved=resolved,
        space=space,
        rules=rules,
        baseline=_legal_baseline(given, resolved, rules) if given else None,
        timeout_s=timeout_s,
        trial_timeout_s=trial_timeout_s or 0.0,
    )


def run_inputs(planned: Plan) -> Inputs:
    """What decides what is searched and measured, and so names the run folder.

    The measured figures of a local machine are left out: they differ from probe to probe, the machine does not.
    """
    problem, request, machine = planned.problem, planned.request, planned.resolved.machine
    return {
        "tool_version": __version__,
        "model": to_json(problem.model),
        "cluster": _local_identity(machine, problem) if machine else to_json(problem.cluster),
        "workload": to_json(problem.workload),
        "engine": planned.resolved.engine.name,
        "memory_limit": request.problem.memory_limit,
        "space": to_json(planned.space),
        "baseline": planned.baseline.layout.key if planned.baseline else None,
        "sampler": request.sampler,
        "seed": request.seed,
    }


def _local_identity(machine: MachineProbe, problem: Problem) -> dict[str, JsonValue]:
    return {
        "name": problem.cluster.name,
        "device": machine.device,
        "device_name": machine.name,
        "gpus": problem.cluster.gpus,
        "cores": machine.cores,
    }


def _pinned_space(request: TuneRequest) -> SearchSpace:
    faults: list[Fault] = []
    space = attempt(faults, lambda: load_space(request.space))
    pins: dict[str, tuple[AxisValue, ...]] = {}
    for name, text in request.axes.items():
        values = attempt(faults, lambda name=name, text=text: parse_axis_values(name, text))  # type: ignore[misc]
        if values is not None:
            pins[name] = values
    if faults or space is None:
        raise InputError(faults)
    for name, values in pins.items():
        space = space.with_axis(name, values)
    return space


def _seconds(text: str | None, flag: str) -> float | None:
    if text is None:
        return None
    try:
        duration_s = parse_seconds(text if not _is_number(text) else f"{text} s")
    except ValueError as error:
        raise InputError.one(str(error), where=flag) from error
    if duration_s <= 0:
        raise InputError.one(f"'{text}' is not positive; give a duration such as 10 min", where=flag)
    return duration_s


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def _legal_baseline(
    given: Mapping[str, AxisValue], resolved: Resolved, rules: tuple[Rule, ...]
) -> ResolvedLayout:  # fmt: skip
    """The user's own layout with every axis filled in. Raises InputError with every rule that it breaks."""
    layout = resolve_layout(given, resolved.engine.defaults, resolved.problem)
    broken = broken_rules(LayoutTable.of([layout.layout]), 0, resolved.problem, rules)
    if broken:
        raise InputError(Fault(where="--baseline", key=reason.code, message=reason.message) for reason in broken)
    return layout


def _require_target(resolved: Resolved, host: Host, observer: Observer) -> None:
    """A measurement counts only on its target: refuse trials elsewhere, and say what is different."""
    engine, problem = resolved.engine, resolved.problem
    if not engine.runs_trials:
        msg = f"engine {engine.name} has no runner for trials yet; ask with --trials 0, or take --engine torch"
        raise EnvironmentFaultError(msg)
    of_the_problem = tuple(rule for rule in engine.launch_rules if not rule.axes)
    why_not = broken_rules(LayoutTable.of([Layout()]), 0, problem, of_the_problem)
    if why_not:
        msg = f"{'; '.join(reason.message for reason in why_not)}; ask with --trials 0"
        raise EnvironmentFaultError(msg)
    require_torch(host.python)
    if resolved.machine is not None:
        return
    here = measure_machine(host, observer=observer)
    target = problem.cluster
    same_gpu = here.device == target.gpu.device and _same_device(here, target.gpu.name)
    if target.nodes == 1 and same_gpu and here.gpus >= target.gpus:
        return
    machine = f"{here.gpus} x {here.name}" if here.device == "cuda" else f"no GPU, {here.cores} CPU cores"
    msg = (
        f"a trial counts only on its target: {target.name} is {target.nodes} x {target.gpus_per_node} x "
        f"{target.gpu.name}, this machine has {machine}; ask with --trials 0, take --cluster local, or add "
        f"--scale-down to try a small model of the same kind here"
    )
    raise EnvironmentFaultError(msg)


def _same_device(here: MachineProbe, name: str) -> bool:
    known = gpu_of_device(here.name)
    return known is not None and known.spec.name == name


def on_kept_machine(planned: Plan, run: RunFolder) -> Plan:
    """The same plan on the figures that this machine was measured with when the run began; kept in the run folder."""
    machine = planned.resolved.machine
    if machine is None:
        return planned
    if not run.machine.exists():
        write_atomically(run.machine, json.dumps(to_json(machine), indent=2) + "\n")
        return planned
    kept = from_json(MachineProbe, read_json(run.machine), where=str(run.machine))
    cluster = local_cluster(kept, planned.problem.cluster.gpus)
    problem = replace(planned.problem, cluster=cluster)
    limit = limit_bytes(cluster, memory_limit_of(planned.request.problem.memory_limit))
    return replace(planned, resolved=replace(planned.resolved, problem=problem, limit_bytes=limit, machine=kept))
