"""Who proposes the next layout: the calibrated cost model, or one of Optuna's own samplers by name."""

import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Final

from optuna.distributions import BaseDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, GPSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial

from autotune.errors import EnvironmentFaultError, InputError
from autotune.search.distributions import Distributions, params_of
from autotune.spec.layout import Layout

COST: Final = "cost"
SAMPLERS: Final = (COST, "tpe", "random", "nsga2", "gp")

CONSTRAINT: Final = "infeasibility"
"""Name of the constraint, and of the trial attribute that holds its value: above 0 is infeasible."""

_TRIALS_HOLD_CONSTRAINTS: Final = hasattr(Trial, "set_constraint")  # before Optuna 5.0 each sampler asks a function
_POPULATION: Final = 8  # Optuna's 50 would leave a search of a few dozen trials in its first, random generation


class CostGuidedSampler(BaseSampler):
    """Proposes what `choose` returns: the open layout that the calibrated cost model expects to be the fastest."""

    def __init__(self, choose: Callable[[], Layout], distributions: Distributions) -> None:
        self._choose = choose
        self._distributions = distributions

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> Distributions:
        """All axes are decided together."""
        return self._distributions

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: Distributions) -> dict[str, Any]:
        """The chosen layout's value on every axis."""
        return params_of(self._choose())

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Raises ValueError: a parameter that is not an axis has no value in a layout."""
        msg = f"'{param_name}' is not an axis, or its chosen value is not among those of the study"
        raise ValueError(msg)


def make_sampler(name: str, *, seed: int) -> BaseSampler:
    """One of Optuna's samplers. The same seed proposes the same sequence.

    Raises InputError for an unknown name, EnvironmentFaultError for "gp" without torch.
    """
    match name:
        case "random":
            return RandomSampler(seed=seed)
        case "tpe":
            return _constrained(TPESampler, seed=seed, multivariate=True)
        case "nsga2":
            return _constrained(NSGAIISampler, seed=seed, population_size=_POPULATION)
        case "gp":
            if find_spec("torch") is None:
                msg = "the sampler 'gp' needs torch, which is not installed; install autotune[trials], or choose 'tpe'"
                raise EnvironmentFaultError(msg)
            return _constrained(GPSampler, seed=seed)
        case _:
            message = f"'{name}' is not a sampler; known: {', '.join(SAMPLERS)}"
            raise InputError.one(message, where="--sampler")


def set_constraint(trial: Trial, value: float) -> None:
    """Keep the constraint's value in the trial, where `_constraints_of` finds it and, from Optuna 5.0 on, Optuna."""
    trial.set_user_attr(CONSTRAINT, value)
    if _TRIALS_HOLD_CONSTRAINTS:
        trial.set_constraint(CONSTRAINT, value)


def _constrained(kind: Callable[..., BaseSampler], **options: Any) -> BaseSampler:
    """A sampler that knows which trials were infeasible.

    Optuna calls the way to tell it (before 5.0), multivariate TPE and its Gaussian processes experimental.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        if _TRIALS_HOLD_CONSTRAINTS:
            return kind(**options)
        return kind(**options, constraints_func=_constraints_of)


def _constraints_of(trial: FrozenTrial) -> Sequence[float]:
    return (float(trial.user_attrs.get(CONSTRAINT, 0.0)),)
