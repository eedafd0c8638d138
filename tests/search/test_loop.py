import numpy as np
import optuna
import pytest
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, TrialState

from autotune.cost.profile import Factors
from autotune.progress import Event, Noted, StageAdvanced, StageFinished, StageStarted, Warned
from autotune.search.dominance import as_large
from autotune.search.loop import SearchResult, run_search
from autotune.search.stopping import Budget, StopReason
from autotune.search.told import Fate
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.outcome import Failed, Status
from tests.search.toy import GIB, Machine, candidates, fastest_that_fits, layouts, measured, score

SCATTER = (0.01, -0.01, 0.005)


class Listener:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def notify(self, event: Event) -> None:
        self.events.append(event)


def _search(machine: Machine, *, trials: int = 8, storage=None, **options) -> SearchResult:
    settings = {
        "candidates": candidates(),
        "study_name": "toy",
        "storage": storage or InMemoryStorage(),
        "seed": 0,
        "budget": Budget(trials=trials),
        "run_trial": machine.run,
    }
    return run_search(**(settings | options))


def _told_to_optuna(machine: Machine, **options) -> tuple[SearchResult, list[FrozenTrial]]:
    storage = InMemoryStorage()
    result = _search(machine, storage=storage, **options)
    return result, optuna.load_study(storage=storage, study_name=result.study_name).get_trials()


@pytest.mark.parametrize(
    "truth",
    [
        Factors(),
        Factors(compute_time=1.5, communication_time=3.0, overhead_s=0.1, memory=1.2),
        Factors(compute_time=0.6, communication_time=8.0),
        Factors(memory=1.4),
    ],
)
def test_the_search_finds_the_fastest_layout_that_fits_although_the_model_starts_out_wrong(truth):
    machine = Machine(truth, SCATTER)

    result = _search(machine, trials=12)

    assert result.best is not None
    assert result.best.layout.key == fastest_that_fits(truth)
    assert len(machine.ran) == len(set(machine.ran)) <= 12


def test_a_search_ends_without_spending_its_budget_when_no_layout_can_be_expected_to_win():
    machine = Machine(scatter=(0.001, -0.001))

    result = _search(machine, trials=24)

    assert result.stop.reason is StopReason.NONE_CAN_WIN
    assert len(machine.ran) < 8
    assert result.best is not None
    assert result.best.layout.key in result.stop.sentence


def test_a_search_without_an_end_runs_every_layout_that_may_fit_and_says_so():
    machine = Machine()

    # Step times that do not count never end a search.
    result = _search(machine, trials=99, candidates=candidates(time_counts=False))

    fits = score(LayoutTable.of(layouts()), Factors()).memory.peak_bytes <= candidates().limit_bytes
    assert result.stop.reason is StopReason.NONE_LEFT
    assert sorted(machine.ran) == sorted(layout.key for layout, fit in zip(layouts(), fits, strict=True) if fit)


def test_the_budget_counts_real_runs_and_no_asks():
    machine = Machine()

    result = _search(machine, trials=2, sampler="random", candidates=candidates(time_counts=False))

    assert (result.stop.reason, len(machine.ran)) == (StopReason.BUDGET, 2)
    assert len(result.tried) > 2


def test_no_trial_begins_after_the_deadline():
    times = iter([0.0, 5.0, 10.0])

    result = _search(Machine(), budget=Budget(trials=9, deadline_s=10.0), clock=lambda: next(times))

    assert result.stop.sentence == "the time limit passed after 2 of 9 trials"


def test_the_baseline_runs_first_even_if_it_is_predicted_not_to_fit():
    baseline = Layout(dp_shard=8, zero_stage=1, micro_batch_size=4)  # 1 + 40 + 24 GiB of 30
    machine = Machine()

    result = _search(machine, trials=2, baseline=baseline)

    assert machine.ran[0] == baseline.key
    assert result.tried[0].told.fate is Fate.OUT_OF_MEMORY


def test_a_baseline_that_is_not_a_candidate_is_a_bug_of_the_caller():
    with pytest.raises(ValueError, match="the baseline tp8-mbs1 is not among the candidates"):
        _search(Machine(), baseline=Layout(tp=8))


def test_what_each_trial_is_told_and_keeps():
    machine = Machine(Factors(memory=1.3), SCATTER)  # the first choice, predicted at 27 of 30 GiB, dies

    _, told = _told_to_optuna(machine, trials=3)

    first, second, _ = told
    assert first.state is TrialState.COMPLETE
    assert first.value == pytest.approx(1.5 * 3.2)  # nothing was measured yet; 3.2 s were predicted
    assert first.user_attrs["infeasibility"] > 0
    assert first.user_attrs["layout"] == "tp2-shard4-z1-mbs1"
    assert first.user_attrs["result"] == {"status": "out-of-memory", "evidence": "rank-0: tried to allocate 2.0 GiB"}
    assert second.state is TrialState.COMPLETE
    assert second.value == second.user_attrs["measured"]["step_time_s"]
    assert second.user_attrs["infeasibility"] < 0
    assert second.user_attrs["predicted"]["time_s"]["tensor_parallel"] == pytest.approx(0.6)  # 0.2 s · (4 - 1)
    assert second.user_attrs["predicted"]["memory"] > 1.0  # the out-of-memory has taught the model already


@pytest.mark.parametrize(
    ("status", "state", "fate"),
    [
        (Status.INVALID, TrialState.PRUNED, Fate.REFUSED),
        (Status.CRASH, TrialState.FAIL, Fate.FAULT),
        (Status.TIMEOUT, TrialState.FAIL, Fate.FAULT),
    ],
)
def test_a_run_that_fails_is_told_counts_and_is_not_repeated(status, state, fate):
    ran: list[str] = []

    def fail(number: int, layout: Layout) -> Failed:
        ran.append(layout.key)
        return Failed(status=status, evidence="why")

    result, told = _told_to_optuna(Machine(), trials=3, run_trial=fail)

    assert [trial.state for trial in told] == [state] * 3
    assert [tried.told.fate for tried in result.tried] == [fate] * 3
    assert len(set(ran)) == 3
    assert result.best is None
    assert result.stop.reason is StopReason.BUDGET


def test_the_number_of_a_trial_is_the_studys():
    machine = Machine()

    _, told = _told_to_optuna(machine, trials=3, sampler="random", seed=3)

    ran = [trial.number for trial in told if "result" in trial.user_attrs]
    assert machine.numbers == ran


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, SystemExit])
def test_whatever_ends_a_trial_it_is_told_and_the_error_goes_on(error):
    def stop(number: int, layout: Layout) -> Failed:
        raise error

    storage = InMemoryStorage()
    with pytest.raises(error):
        _search(Machine(), storage=storage, run_trial=stop)

    (study,) = optuna.get_all_study_summaries(storage=storage)
    trials = optuna.load_study(storage=storage, study_name=study.study_name).get_trials()
    assert [trial.state for trial in trials] == [TrialState.FAIL]
    assert "told" not in trials[0].user_attrs


@pytest.mark.parametrize("sampler", ["cost", "random", "tpe", "nsga2"])
def test_the_same_seed_gives_the_same_sequence(sampler):
    sequences = []
    for _ in range(2):
        result = _search(Machine(scatter=SCATTER), trials=3, sampler=sampler, seed=5)
        sequences.append([tried.layout.key for tried in result.tried])

    assert sequences[0] == sequences[1]


@pytest.mark.parametrize("sampler", ["random", "tpe", "nsga2", "gp"])
def test_a_sampler_of_optunas_never_makes_a_layout_run_twice_or_after_it_is_ruled_out(sampler):
    machine = Machine(Factors(memory=1.4))

    result = _search(machine, trials=6, sampler=sampler, seed=2, candidates=candidates(time_counts=False))

    assert len(machine.ran) == len(set(machine.ran)) == 6
    _assert_nothing_dominated_ran(result)


def test_no_layout_runs_after_one_that_needs_no_more_of_any_part_of_the_memory_ran_out_of_it():
    for memory in (1.05, 1.3, 1.6, 2.2):
        result = _search(Machine(Factors(memory=memory)), trials=24, candidates=candidates(time_counts=False))
        _assert_nothing_dominated_ran(result)


def _assert_nothing_dominated_ran(result: SearchResult) -> None:
    """Against brute force: each run is compared with each out-of-memory before it."""
    table = LayoutTable.of(layouts())
    estimates = score(table, Factors())
    dead: list[int] = []
    for tried in result.tried:
        if tried.result is None or tried.row is None:
            continue
        for row in dead:
            smaller = [part[tried.row] < part[row] for part in estimates.memory.parts.values()]
            assert any(smaller) or table.schedule[tried.row] != table.schedule[row]
            assert bool(as_large(table, estimates, row)[tried.row]) is not any(smaller)
        if tried.told.fate is Fate.OUT_OF_MEMORY:
            dead.append(tried.row)


def test_a_repeated_proposal_is_told_the_stored_value_and_does_not_run():
    machine = Machine()
    table = LayoutTable.of([Layout(tp=4, dp_shard=2, zero_stage=1), Layout(tp=2, dp_shard=4, zero_stage=1)])

    result, told = _told_to_optuna(
        machine, trials=2, sampler="random", seed=6, candidates=candidates(table=table, time_counts=False)
    )

    repeats = [tried for tried in result.tried if tried.told.reason.startswith("repeats trial")]
    assert repeats
    for tried in repeats:
        assert told[tried.number].state is TrialState.COMPLETE
        assert told[tried.number].value == pytest.approx(3.6 if tried.layout.tp == 4 else 3.2)
    assert len(machine.ran) == 2


def test_what_does_not_fit_or_cannot_win_is_pruned_with_a_constraint_and_without_a_run():
    machine = Machine(scatter=(0.001, -0.001))

    result, told = _told_to_optuna(machine, trials=24, sampler="random", seed=0)

    fates = {tried.told.fate for tried in result.tried}
    assert fates == {Fate.MEASURED, Fate.UNKNOWN, Fate.DOES_NOT_FIT, Fate.CANNOT_WIN}
    for tried in result.tried:
        if tried.result is None and not tried.told.reason.startswith("repeats"):
            assert told[tried.number].state is TrialState.PRUNED
            assert told[tried.number].user_attrs["infeasibility"] > 0
            assert told[tried.number].value is None


def test_a_sampler_that_leads_nowhere_is_replaced_by_the_order_of_the_cost_model():
    listener = Listener()
    machine = Machine()

    result = _search(
        machine, sampler="random", observer=listener, budget=Budget(trials=3, useless_asks=3), seed=0,
        candidates=candidates(time_counts=False),
    )  # fmt: skip

    warnings = [event.message for event in listener.events if isinstance(event, Warned)]
    assert len(warnings) == 1
    assert warnings[0].startswith("3 proposals of the sampler in a row led to no trial")
    assert result.stop.reason is StopReason.BUDGET
    assert machine.ran == ["tp2-shard4-z1-mbs1", "tp4-shard2-z1-mbs1", "pp2-shard4-z1-mbs1"]  # 3.2, 3.6 and 4 s


def test_the_observer_hears_what_runs_what_came_of_it_and_why_it_ended():
    listener = Listener()

    result = _search(Machine(), trials=2, observer=listener)

    assert listener.events == [
        StageStarted(name="running trials", total=2),
        StageAdvanced(done=0, current="tp2-shard4-z1-mbs1"),
        Noted(message="trial 0, tp2-shard4-z1-mbs1: measured 3.2 s, 3.2 s were predicted"),
        StageAdvanced(done=1, current="tp4-shard2-z1-mbs1"),
        Noted(message="trial 1, tp4-shard2-z1-mbs1: measured 3.6 s, 3.6 s were predicted"),
        StageFinished(summary=result.stop.sentence),
    ]


def test_the_result_holds_the_calibrated_estimates_of_all_layouts():
    result = _search(Machine(Factors(compute_time=2.0, communication_time=2.0), SCATTER), trials=5)

    assert result.factors.fitted_to == len(result.tried)
    assert np.allclose(result.estimates.time.step_s, score(LayoutTable.of(layouts()), result.factors).time.step_s)
    assert result.factors.compute_time == pytest.approx(2.0, rel=0.05)


def test_where_step_times_do_not_count_the_best_is_the_fastest_by_expectation_of_those_that_ran():
    # Measured backwards: what the model expects to be slow is measured fast, on a machine that measures no speed.
    def run(number: int, layout: Layout):
        return measured(10.0 - number, peak_bytes=26.0 * GIB)

    result = _search(Machine(), trials=3, run_trial=run, candidates=candidates(time_counts=False))

    assert result.tried[0].layout.key == "tp2-shard4-z1-mbs1"
    assert result.best is not None
    assert result.best.layout.key == "tp2-shard4-z1-mbs1"
