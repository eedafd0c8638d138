"""tune(): enumerate, score, run, rank, write. The whole pipe, from what was typed to a run folder."""

import json
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import TYPE_CHECKING

from autotune import __version__
from autotune.cost.estimate import estimate
from autotune.cost.estimates import Estimates
from autotune.cost.feasibility import DOES_NOT_FIT, VerdictColumn, verdict_codes
from autotune.cost.profile import Factors, MemoryProfile
from autotune.progress import Observer, StageFinished, StageStarted, Warned
from autotune.report.as_json import report_json
from autotune.report.markdown import report_markdown
from autotune.report.ranked import Report, SpaceSummary
from autotune.report.ranking import Ranking, rank
from autotune.report.scored import ScoredTable
from autotune.report.table_file import write_table
from autotune.space.emptiness import nearest_batches, ways_out, why_empty
from autotune.space.enumeration import Enumeration, enumerate_layouts
from autotune.space.resolve import idle_gpus_note
from autotune.spec.layout import LayoutTable
from autotune.spec.outcome import TrialResult
from autotune.spec.workload import Problem
from autotune.trials.paths import RunFolder, run_folder_name, write_atomically
from autotune.trials.probe import torch_available
from autotune.trials.runs import hold_run, read_trials
from autotune.units import format_count, format_seconds
from autotune.workflow.launch import write_winner
from autotune.workflow.plan import Plan, TuneRequest, on_kept_machine, plan, run_inputs
from autotune.workflow.problem import Host
from autotune.workflow.trials import TrialPlan, trial_runner

if TYPE_CHECKING:
    from autotune.search.loop import SearchResult


def tune(request: TuneRequest, host: Host, observer: Observer) -> Report:
    """Rank the layouts of a space, and leave a run folder.

    Raises InputError, and EnvironmentFaultError where this machine cannot do what is asked. An empty space and one in
    which nothing fits are reports without a winner. KeyboardInterrupt passes through; the same request then continues.
    """
    started_s = time.monotonic()
    planned = plan(request, host, observer)
    inputs = run_inputs(planned)
    root = request.out or host.results / run_folder_name(inputs)
    with hold_run(root, inputs, fresh=request.fresh) as run:
        tuning = _Tuning(planned=on_kept_machine(planned, run), host=host, run=run, observer=observer)
        report = tuning.report(started_s)
        write_atomically(run.report_md, report_markdown(report))
        write_atomically(run.report_json, json.dumps(report_json(report), indent=2, allow_nan=False) + "\n")
    return report


@dataclass(kw_only=True)
class _Tuning:
    """One call of `tune`, after its inputs are understood and its run folder is locked."""

    planned: Plan
    host: Host
    run: RunFolder
    observer: Observer
    warnings: list[str] = field(default_factory=list)

    def report(self, started_s: float) -> Report:
        """Do all of it."""
        self._warn_of_idle_gpus()
        found = self._enumerate()
        factors = Factors()
        estimates = self._score(found.table)
        searched = self._search(found.table) if self.planned.request.trials > 0 and len(found.table) else None
        if searched is not None:
            factors, estimates = searched.factors, searched.estimates
        scored = ScoredTable(
            table=found.table,
            estimates=estimates,
            verdicts=self._verdicts(estimates),
            problem=self.problem,
            profile=self.profile,
            limit_bytes=self.planned.resolved.limit_bytes,
            factors=factors,
            interval=searched.interval if searched else None,
        )
        ranking = self._rank(scored)
        write_table(self.run.table, scored, ranking.ranking_s)
        empty = self._why_empty(found) if not len(found.table) else ()
        report = Report(
            problem=self.problem,
            engine=self.planned.resolved.engine.name,
            command=self.planned.request.command,
            tool_version=__version__,
            space=SpaceSummary(
                enumerated=found.total,
                valid=found.valid,
                invalid=dict(found.rejected),
                infeasible=int((scored.verdicts == DOES_NOT_FIT).sum()),
            ),
            layouts=ranking.layouts,
            winner=ranking.winner,
            nearest_miss=ranking.nearest_miss,
            limit_bytes=scored.limit_bytes,
            run=str(self.run.root),
            warnings=(*self.warnings, *ranking.warnings),
            notes=(*empty, *ranking.notes, *((searched.calibration,) if searched else ())),
            calibration=factors if searched else None,
            stop_reason=searched.stop.sentence if searched else None,
            elapsed_s=time.monotonic() - started_s,
            versions=self._versions(),
        )
        return replace(report, notes=(*report.notes, *write_winner(report, self.planned.resolved.engine, self.run)))

    @property
    def problem(self) -> Problem:
        """The question."""
        return self.planned.problem

    @property
    def profile(self) -> MemoryProfile:
        """The engine's memory habits on this cluster's devices."""
        return self.planned.resolved.engine.memory_on(self.problem.cluster.gpu.device)

    @property
    def time_counts(self) -> bool:
        """More processes than cores share them: their step times rank nothing."""
        return self.problem.cluster.gpu.device == "cuda" or self.problem.cluster.gpus <= self.host.cores

    def _enumerate(self) -> Enumeration:
        started_s = time.monotonic()
        self.observer.notify(StageStarted(name="enumerating layouts"))
        baseline = self.planned.baseline
        found = enumerate_layouts(
            self.planned.space,
            self.problem,
            self.planned.rules,
            schedules=self.planned.resolved.engine.schedules,
            keep=(baseline.layout,) if baseline else (),
        )
        took = format_seconds(time.monotonic() - started_s)
        summary = f"{format_count(found.total)} combinations, {len(found.table):,} legal layouts, in {took}"
        self.observer.notify(StageFinished(summary=summary))
        return found

    def _score(self, table: LayoutTable) -> Estimates:
        started_s = time.monotonic()
        self.observer.notify(StageStarted(name="scoring by the cost model"))
        estimates = estimate(table, self.problem, self.profile, Factors())
        took_s = time.monotonic() - started_s
        rate = f", {format_count(len(table) / took_s)} a second" if len(table) > 1000 else ""
        summary = f"{len(table):,} layouts scored in {format_seconds(took_s)}{rate}"
        self.observer.notify(StageFinished(summary=summary))
        return estimates

    def _verdicts(self, estimates: Estimates) -> VerdictColumn:
        return verdict_codes(estimates, self.profile, self.planned.resolved.limit_bytes, self.problem)

    def _search(self, table: LayoutTable) -> "SearchResult":
        # Imported here: without trials neither Optuna nor SciPy is loaded, and the answer comes in seconds.
        from autotune.search.journal import open_storage
        from autotune.search.loop import run_search
        from autotune.search.standing import Candidates
        from autotune.search.stopping import Budget

        if not self.time_counts:
            self._warn(
                f"{self.problem.cluster.gpus} processes share {self.host.cores} cores: trials show what a layout "
                "computes and what it holds in memory, their step times rank nothing"
            )
        planned, request = self.planned, self.planned.request
        deadline_s = None if planned.timeout_s is None else time.monotonic() + planned.timeout_s
        trial_plan = TrialPlan(
            problem=self.problem,
            run=self.run,
            limit_bytes=planned.resolved.limit_bytes,
            time_limit_s=planned.trial_timeout_s,
            deadline_s=deadline_s,
            seed=request.seed,
        )
        return run_search(
            candidates=Candidates(
                table=table,
                score=lambda rows, factors: estimate(rows, self.problem, self.profile, factors),
                verdicts=self._verdicts,
                limit_bytes=planned.resolved.limit_bytes,
                time_counts=self.time_counts,
            ),
            study_name="autotune",
            storage=open_storage(self.run.journal),
            seed=request.seed,
            budget=Budget(trials=request.trials, deadline_s=deadline_s),
            run_trial=trial_runner(trial_plan, self.host),
            baseline=planned.baseline.layout if planned.baseline else None,
            sampler=request.sampler,
            finished=self._finished(),
            observer=self.observer,
        )

    def _finished(self) -> Mapping[str, TrialResult]:
        return {trial.key: trial.result for trial in read_trials(self.run)}

    def _rank(self, scored: ScoredTable) -> Ranking:
        baseline = self.planned.baseline
        return rank(
            scored,
            self._finished(),
            top=self.planned.request.top,
            origins=self.planned.origins,
            baseline=baseline.layout if baseline else None,
            baseline_origins=baseline.origins if baseline else None,
            time_counts=self.time_counts,
        )

    def _why_empty(self, found: Enumeration) -> tuple[str, ...]:
        """Why no layout is legal, and what would make one so."""
        space, rules = self.planned.space, self.planned.rules
        schedules = self.planned.resolved.engine.schedules
        batches = nearest_batches(space, self.problem, rules, schedules=schedules)
        works = f"global batches near {self.problem.workload.global_batch_size} that work: " if batches else ""
        found_batches = (works + " and ".join(map(str, batches)),) if batches else ()
        return (why_empty(found), *found_batches, *ways_out(space, self.problem, rules, schedules=schedules))

    def _warn_of_idle_gpus(self) -> None:
        """The space uses every GPU; a user's own layout may not."""
        baseline = self.planned.baseline
        idle = idle_gpus_note(baseline.layout, self.problem) if baseline else None
        if idle:
            self._warn(f"the baseline: {idle}")

    def _warn(self, message: str) -> None:
        self.warnings.append(message)
        self.observer.notify(Warned(message=message))

    def _versions(self) -> dict[str, str]:
        versions = {"autotune": __version__, "python": platform.python_version(), "numpy": version("numpy")}
        if self.planned.request.trials > 0:
            versions |= {"optuna": version("optuna"), "torch": torch_available(self.host.python) or "none"}
        return versions
