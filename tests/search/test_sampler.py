import optuna
import pytest
from optuna.trial import TrialState

from autotune.errors import EnvironmentFaultError, InputError
from autotune.search import sampler as sampler_module
from autotune.search.distributions import distributions_of, layout_of
from autotune.search.journal import quiet_optuna
from autotune.search.sampler import SAMPLERS, CostGuidedSampler, make_sampler, set_constraint
from autotune.spec.layout import Layout, LayoutTable
from tests.search.toy import layouts

DISTRIBUTIONS = distributions_of(LayoutTable.of(layouts()))
OPTUNAS = [name for name in SAMPLERS if name != "cost"]


def _study(sampler: optuna.samplers.BaseSampler) -> optuna.Study:
    with quiet_optuna():
        return optuna.create_study(sampler=sampler)


def test_the_cost_guided_sampler_asks_for_what_it_is_told_to_choose():
    wanted = iter([layouts()[3], layouts()[17]])
    study = _study(CostGuidedSampler(lambda: next(wanted), DISTRIBUTIONS))

    got = [layout_of(study.ask(DISTRIBUTIONS).params) for _ in range(2)]

    assert got == [layouts()[3], layouts()[17]]


def test_a_chosen_value_that_the_study_does_not_have_is_a_bug_and_not_another_value():
    study = _study(CostGuidedSampler(lambda: Layout(tp=3), DISTRIBUTIONS))

    with pytest.raises(ValueError, match=r"'3' not in \(1, 2, 4\)"):
        study.ask(DISTRIBUTIONS)


def test_a_parameter_that_is_no_axis_has_no_value():
    trial = _study(CostGuidedSampler(lambda: layouts()[0], DISTRIBUTIONS)).ask()

    with pytest.raises(ValueError, match="'batch' is not an axis"):
        trial.suggest_int("batch", 1, 2)


def _proposals(name: str, seed: int, count: int = 25) -> list[Layout | None]:
    study = _study(make_sampler(name, seed=seed))
    proposed = []
    for number in range(count):
        trial = study.ask(DISTRIBUTIONS)
        proposed.append(layout_of(trial.params))
        set_constraint(trial, float(number % 2))
        with quiet_optuna():
            if number % 3 == 0:
                study.tell(trial, state=TrialState.PRUNED)
            else:
                study.tell(trial, 1.0 + trial.params["tp"] + number % 5)
    return proposed


@pytest.mark.parametrize("name", OPTUNAS)
def test_the_same_seed_proposes_the_same_sequence_and_another_seed_another(name, capfd):
    count = 13 if name == "gp" else 25  # the Gaussian process begins after ten random trials
    first = _proposals(name, 7, count)

    assert _proposals(name, 7, count) == first
    assert _proposals(name, 8, count) != first
    assert capfd.readouterr().err == ""


def test_optuna_is_told_the_constraint_of_a_trial():
    study = _study(make_sampler("tpe", seed=0))
    trial = study.ask(DISTRIBUTIONS)

    set_constraint(trial, 0.25)
    with quiet_optuna():
        study.tell(trial, 1.0)

    told = study.trials[0]
    assert told.user_attrs == {"infeasibility": 0.25}
    assert list(told.constraints.values()) == [0.25]


def test_an_unknown_sampler_is_answered_with_the_known_ones():
    with pytest.raises(InputError, match="--sampler: 'grid' is not a sampler; known: cost, tpe, random, nsga2, gp"):
        make_sampler("grid", seed=0)


def test_the_gaussian_process_without_torch_is_a_fault_of_the_environment(monkeypatch):
    monkeypatch.setattr(sampler_module, "find_spec", lambda name: None)

    with pytest.raises(EnvironmentFaultError, match="needs torch"):
        make_sampler("gp", seed=0)
