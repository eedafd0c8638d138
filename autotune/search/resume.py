"""What an earlier start of the same study has left: the trials it told, and the layouts it did not finish."""

from collections.abc import Iterator
from dataclasses import dataclass

import optuna
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from autotune.search.distributions import Distributions, fingerprint, layout_of
from autotune.search.journal import sweep_running
from autotune.search.standing import Candidates
from autotune.search.told import Tried, prediction_in, result_in, told_in
from autotune.spec.layout import Layout


@dataclass(frozen=True, kw_only=True, slots=True)
class Past:
    """tried: told trials in their order; unfinished: layouts that were asked but never told, oldest first."""

    tried: tuple[Tried, ...]
    unfinished: tuple[Layout, ...]


def open_study(storage: BaseStorage, name: str, distributions: Distributions) -> Study:
    """The study of this name and these distributions, begun or continued."""
    full_name = f"{name}-{fingerprint(distributions)}"
    return optuna.create_study(storage=storage, study_name=full_name, direction="minimize", load_if_exists=True)


def read_past(study: Study, candidates: Candidates) -> Past:
    """Read the study, and end what a killed process left open in it.

    A trial that keeps its verdict but was not told is told now; any other that still runs is told FAIL, and its
    layout is unfinished, as is one whose process was interrupted.
    """
    _tell_kept_verdicts(study)
    sweep_running(study)
    trials = study.get_trials(deepcopy=False)
    tried = tuple(_tried(trials, candidates))
    told = {one.layout for one in tried}
    unfinished = [layout_of(trial.params) for trial in trials if trial.state is TrialState.FAIL and not told_in(trial)]
    return Past(
        tried=tried,
        unfinished=tuple(dict.fromkeys(layout for layout in unfinished if layout is not None and layout not in told)),
    )


def _tell_kept_verdicts(study: Study) -> None:
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        told = told_in(trial)
        if told is not None:
            study.tell(trial.number, values=told.value, state=told.optuna_state)


def _tried(trials: list[FrozenTrial], candidates: Candidates) -> Iterator[Tried]:
    for trial in trials:
        told = told_in(trial)
        layout = layout_of(trial.params)
        if told is None or layout is None:
            continue
        yield Tried(
            number=trial.number,
            layout=layout,
            row=candidates.row_of(layout),
            predicted=prediction_in(trial),
            told=told,
            result=result_in(trial),
        )
