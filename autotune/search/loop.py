"""The search: ask for a layout, score it, prune it or run it, tell, refit; until nothing is left to win or to spend."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from optuna.storages import BaseStorage

from autotune.calibration.residuals import Interval
from autotune.cost.estimates import Estimates
from autotune.cost.profile import Factors
from autotune.progress import Noted, Observer, SilentObserver, StageAdvanced, StageFinished, StageStarted, Warned
from autotune.search.asking import Asker
from autotune.search.distributions import distributions_of
from autotune.search.history import History
from autotune.search.journal import quiet_optuna
from autotune.search.judge import predict, reason_not_to_run
from autotune.search.resume import Past, open_study, read_past
from autotune.search.sampler import COST, make_sampler
from autotune.search.standing import Candidates, Standing
from autotune.search.stopping import Budget, Hope, Stop, hopeless, spent
from autotune.search.told import Fate, Prediction, Told, Tried, told_of_result, told_unknown
from autotune.spec.layout import BoolColumn, Layout
from autotune.spec.outcome import Failed, Status, TrialResult

RunTrial = Callable[[int, Layout], TrialResult]
"""Runs a layout for real, in the folder of this number. What it raises ends the search; a failed run is a value."""


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """What a search leaves.

    tried: every asked layout, in the order of asking; best: the fastest one that ran within its memory, by what was
    measured if such times count, else by what is expected; estimates, ruled_out: rows of the candidates' table,
    calibrated; interval, memory_interval: where the next step time and peak are expected, as ratios to the estimate.
    calibration: one sentence on what the runs were enough for.
    """

    study_name: str
    tried: tuple[Tried, ...]
    best: Tried | None
    stop: Stop
    factors: Factors
    calibration: str
    interval: Interval | None
    memory_interval: Interval | None
    estimates: Estimates
    ruled_out: BoolColumn


def run_search(
    *,
    candidates: Candidates,
    study_name: str,
    storage: BaseStorage,
    seed: int,
    budget: Budget,
    run_trial: RunTrial,
    baseline: Layout | None = None,
    sampler: str = COST,
    finished: Mapping[str, TrialResult] | None = None,
    observer: Observer | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> SearchResult:
    """Run trials until the budget or the hope is spent; the baseline first, whatever is predicted of it.

    With a storage that an earlier start has left, its finished trials are not run again and count as spent; a layout
    that was not finished is run before new ones. finished: results that trial folders hold, by layout key, of which
    the study may not have heard. Raises what `run_trial` raises, after the study is told that the trial failed.
    """
    if baseline is not None and candidates.row_of(baseline) is None:
        msg = f"the baseline {baseline.key} is not among the candidates"
        raise ValueError(msg)
    standing = Standing(candidates)
    distributions = distributions_of(candidates.table)
    with quiet_optuna():
        study = open_study(storage, study_name, distributions)
        past = read_past(study, candidates)
        asker = Asker(study, distributions, standing)
        if sampler != COST:
            # After a restart, a sampler with the same seed would propose the same layouts again.
            asker.propose_with(make_sampler(sampler, seed=seed + len(study.get_trials(deepcopy=False))))
        search = _Search(
            asker=asker,
            standing=standing,
            budget=budget,
            run_trial=run_trial,
            observer=observer or SilentObserver(),
            clock=clock,
        )
        search.take_over(past, finished or {})
        stop = search.until_stopped(baseline, past.unfinished)
    return search.result(study.study_name, stop)


@dataclass(kw_only=True, slots=True)
class _Search:
    """A search in progress."""

    asker: Asker
    standing: Standing
    budget: Budget
    run_trial: RunTrial
    observer: Observer
    clock: Callable[[], float]
    history: History = field(default_factory=History)
    useless_asks: int = 0

    def take_over(self, past: Past, finished: Mapping[str, TrialResult]) -> None:
        """What earlier starts told, and what their trial folders hold beyond it."""
        for tried in past.tried:
            self._take(tried)
        self.standing.recalibrate()
        for layout, result in known_layouts(finished):
            if self.history.run_of(layout) is None and self.standing.candidates.row_of(layout) is not None:
                self._step(layout, known=result)

    def until_stopped(self, baseline: Layout | None, unfinished: Sequence[Layout]) -> Stop:
        """The baseline, what was not finished, then one proposal after the other."""
        first = dict.fromkeys(layout for layout in (baseline, *unfinished) if layout is not None)
        queue = deque(layout for layout in first if self.history.run_of(layout) is None)
        self.observer.notify(StageStarted(name="running trials", total=self.budget.trials))
        while (stop := self._stop(waiting=bool(queue))) is None:
            layout = queue.popleft() if queue else None
            self._step(layout, forced=layout is not None and layout == baseline)
            self._give_up_on_sampler()
        self.observer.notify(StageFinished(summary=stop.sentence))
        return stop

    def result(self, study_name: str, stop: Stop) -> SearchResult:
        """All of it, calibrated by the last run."""
        standing = self.standing
        return SearchResult(
            study_name=study_name,
            tried=tuple(self.history.tried),
            best=self.history.best(standing),
            stop=stop,
            factors=standing.factors,
            calibration=standing.calibration,
            interval=standing.interval,
            memory_interval=standing.memory_interval,
            estimates=standing.estimates,
            ruled_out=standing.ruled_out,
        )

    def _stop(self, *, waiting: bool) -> Stop | None:
        runs = self.history.runs
        stop = spent(self.budget, runs=runs, now_s=self.clock())
        if stop is not None or waiting:
            return stop
        return hopeless(self.budget, runs=runs, best=self.history.time_to_beat(self.standing), hope=self._hope())

    def _hope(self) -> Hope | None:
        row = self.standing.best_open_row()
        if row is None:
            return None
        key = self.standing.candidates.table.layout(row).key
        return Hope(key=key, expected_s=float(self.standing.step_s[row]), low_s=self.standing.low_s(row))

    def _step(self, layout: Layout | None, *, forced: bool = False, known: TrialResult | None = None) -> None:
        """One ask and its answer.

        layout: what to ask for, None leaves it to the sampler; forced: run it whatever is predicted; known: its result.
        """
        tried = self.asker.settle(layout, partial(self._answer, forced=forced, known=known))
        self._take(tried)
        if tried.result is not None:
            self.standing.recalibrate()
        if tried.told.fate is not Fate.UNKNOWN:
            self.observer.notify(Noted(message=f"trial {tried.number}, {tried.layout.key}: {tried.told.reason}"))
        self.useless_asks = self.useless_asks + 1 if tried.result is None else 0

    def _answer(self, number: int, layout: Layout, *, forced: bool, known: TrialResult | None) -> Tried:
        row = self.standing.candidates.row_of(layout)
        if row is None:
            return Tried(number=number, layout=layout, row=None, predicted=None, told=told_unknown())
        predicted = predict(self.standing, row)
        told = self._reason_not_to_run(layout, row, predicted) if known is None and not forced else None
        if told is not None:
            return Tried(number=number, layout=layout, row=row, predicted=predicted, told=told)
        if known is None:
            self.observer.notify(StageAdvanced(done=self.history.runs, current=layout.key))
        result = self.run_trial(number, layout) if known is None else known
        told = told_of_result(
            result,
            predicted,
            worst_measured_s=self.history.worst_measured_s(),
            limit_bytes=self.standing.candidates.limit_bytes,
        )
        return Tried(number=number, layout=layout, row=row, predicted=predicted, told=told, result=result)

    def _reason_not_to_run(self, layout: Layout, row: int, predicted: Prediction) -> Told | None:
        earlier = self.history.run_of(layout)
        if earlier is not None:
            return replace(earlier.told, reason=f"repeats trial {earlier.number}: {earlier.told.reason}")
        return reason_not_to_run(self.standing, row, predicted, self.history.time_to_beat(self.standing))

    def _take(self, tried: Tried) -> None:
        self.history.add(tried)
        if tried.row is not None and tried.result is not None:
            self.standing.add(tried.row, tried.result, out_of_memory=tried.told.fate is Fate.OUT_OF_MEMORY)

    def _give_up_on_sampler(self) -> None:
        """Let the cost model propose for the rest of this start, if the sampler led to no run for too long."""
        if self.useless_asks < self.budget.useless_asks or self.asker.walks_by_cost:
            return
        self.asker.propose_with(None)
        message = (
            f"{self.useless_asks} proposals of the sampler in a row led to no trial (no valid layout, known already, "
            "or no better by prediction); from here on the cost model proposes"
        )
        self.observer.notify(Warned(message=message))


def known_layouts(finished: Mapping[str, TrialResult]) -> Iterator[tuple[Layout, TrialResult]]:
    """Finished results by layout. A key that is not read names an axis of another version; what was interrupted, a
    trial that must run again.
    """
    for key, result in finished.items():
        if isinstance(result, Failed) and result.status is Status.INTERRUPTED:
            continue
        try:
            yield Layout.from_key(key), result
        except ValueError:
            continue
