"""Asking and telling: every asked trial is told, whatever happens in between."""

from collections.abc import Callable
from dataclasses import dataclass

from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import Trial, TrialState

from autotune.search.distributions import Distributions, layout_of
from autotune.search.journal import writing_journal
from autotune.search.sampler import CostGuidedSampler, set_constraint
from autotune.search.standing import Standing
from autotune.search.told import Tried, attributes_of
from autotune.spec.layout import Layout

Answer = Callable[[int, Layout], Tried]
"""Turns an asked trial, by its number and its layout, into what the study is told."""


@dataclass(kw_only=True, slots=True)
class Walker:
    """Chooses for the cost-guided sampler: the layout it is sent to, else the best open one."""

    standing: Standing
    sent_to: Layout | None = None

    def choose(self) -> Layout:
        """The next layout. Only called while one is open."""
        if self.sent_to is not None:
            return self.sent_to
        row = self.standing.best_open_row()
        assert row is not None, "the search goes on with no open layout"
        return self.standing.candidates.table.layout(row)


class Asker:
    """The study and who proposes its trials: one of Optuna's samplers, or the cost model if `proposer` is None."""

    def __init__(self, study: Study, distributions: Distributions, standing: Standing) -> None:
        self._study = study
        self._distributions = distributions
        self._walker = Walker(standing=standing)
        self._by_cost = CostGuidedSampler(self._walker.choose, distributions)
        self._proposer: BaseSampler = self._by_cost
        study.sampler = self._by_cost

    @property
    def walks_by_cost(self) -> bool:
        """Whether the cost model proposes."""
        return self._proposer is self._by_cost

    def propose_with(self, sampler: BaseSampler | None) -> None:
        """Let another sampler propose; None: the cost model."""
        self._proposer = sampler or self._by_cost

    def settle(self, layout: Layout | None, answer: Answer) -> Tried:
        """Ask for this layout, or for what the sampler proposes; keep the answer in the trial and tell it.

        If there is no answer (Ctrl-C, an error of ours) the trial is told FAIL, so that the next start finds its
        layout unfinished, and what was raised goes on.
        """
        trial = self._ask(layout)
        told: Tried | None = None
        try:
            asked = layout_of(trial.params)
            assert asked is not None, "an asked trial has a value on every axis"
            tried = answer(trial.number, asked)
            _keep(trial, tried)
            told = tried
        finally:
            self._tell(trial, told)
        return tried

    def _ask(self, layout: Layout | None) -> Trial:
        self._walker.sent_to = layout
        self._study.sampler = self._proposer if layout is None else self._by_cost
        try:
            with writing_journal():
                return self._study.ask(self._distributions)
        finally:
            self._study.sampler = self._proposer

    def _tell(self, trial: Trial, tried: Tried | None) -> None:
        with writing_journal():
            if tried is None:
                self._study.tell(trial, state=TrialState.FAIL)
            else:
                self._study.tell(trial, values=tried.told.value, state=tried.told.optuna_state)


def _keep(trial: Trial, tried: Tried) -> None:
    with writing_journal():
        if tried.told.constraint is not None:
            set_constraint(trial, tried.told.constraint)
        for name, value in attributes_of(tried).items():
            trial.set_user_attr(name, value)
