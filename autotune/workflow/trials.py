"""One trial of a run: from a layout to a TrialSpec, and from its result to one that may be believed."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from autotune.cost.flops import model_flops_per_step
from autotune.cost.parameters import total_parameters
from autotune.spec.figure import Basis
from autotune.spec.layout import Layout
from autotune.spec.outcome import Measured, TrialResult, TrialSpec
from autotune.spec.workload import Problem
from autotune.trials.outcome import refuse_impossible_speed, write_finished
from autotune.trials.paths import RunFolder
from autotune.trials.torchrun import TorchrunRunner
from autotune.workflow.problem import Host

RunTrial = Callable[[int, Layout], TrialResult]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialPlan:
    """How trials of a run are made.

    limit_bytes: what one process may hold; time_limit_s: of one trial; deadline_s: reading of the monotonic clock at
    which the one that runs is ended, None for no deadline.
    """

    problem: Problem
    run: RunFolder
    limit_bytes: float
    time_limit_s: float
    deadline_s: float | None
    seed: int

    def remaining_s(self) -> float:
        """What a trial that begins now may take."""
        if self.deadline_s is None:
            return self.time_limit_s
        return max(0.0, min(self.time_limit_s, self.deadline_s - time.monotonic()))


def trial_spec(layout: Layout, planned: TrialPlan) -> TrialSpec:
    """What the worker is told to do."""
    cluster = planned.problem.cluster
    return TrialSpec(
        layout=layout,
        model=planned.problem.model,
        workload=planned.problem.workload,
        device=cluster.gpu.device,
        nodes=cluster.nodes,
        processes_per_node=cluster.gpus_per_node,
        seed=planned.seed,
        memory_limit_bytes=_enforced_bytes(planned),
    )


def _enforced_bytes(planned: TrialPlan) -> int | None:
    """The limit that the worker enforces: a CPU process has no other one, a GPU only where the user asks for less."""
    gpu = planned.problem.cluster.gpu
    enforced = gpu.device == "cpu" or planned.limit_bytes < gpu.usable_memory_bytes.value
    return int(planned.limit_bytes) if enforced else None


def trial_runner(planned: TrialPlan, host: Host) -> RunTrial:
    """A function that runs one layout for real in a folder of its own."""
    runner = TorchrunRunner(
        python=host.python,
        environment=host.environment,
        expected_parameters=total_parameters(planned.problem.model),
    )

    def run(number: int, layout: Layout) -> TrialResult:
        folder = planned.run.trial_folder(number, layout.key)
        result = runner.run(trial_spec(layout, planned), folder, time_limit_s=planned.remaining_s())
        believed = believable(result, planned.problem)
        if believed is not result:
            write_finished(folder, believed)
        return believed

    return run


def believable(result: TrialResult, problem: Problem) -> TrialResult:
    """The same result, refused if it is faster than the hardware can be. Only a datasheet's peak is such a bound."""
    peak = problem.cluster.gpu.peak_flops_per_s.get(problem.workload.precision)
    if not isinstance(result, Measured) or peak is None or peak.basis is not Basis.DATASHEET:
        return result
    return refuse_impossible_speed(
        result,
        model_flops_per_step=model_flops_per_step(problem),
        peak_flops_per_s=peak.value,
        processes=problem.cluster.gpus,
    )
