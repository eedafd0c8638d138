from autotune.search.stopping import Best, Budget, Hope, StopReason, cannot_win, hopeless, spent

BEST = Best(key="tp2", step_time_s=2.0)


def test_the_budget_is_spent_when_as_many_trials_have_run():
    assert spent(Budget(trials=3), runs=2, now_s=0) is None

    stop = spent(Budget(trials=3), runs=3, now_s=0)

    assert stop is not None
    assert (stop.reason, stop.sentence) == (StopReason.BUDGET, "3 of 3 trials have run")


def test_no_run_begins_after_the_deadline():
    budget = Budget(trials=3, deadline_s=10.0)
    assert spent(budget, runs=1, now_s=9.9) is None

    stop = spent(budget, runs=1, now_s=10.0)

    assert stop is not None
    assert (stop.reason, stop.sentence) == (StopReason.DEADLINE, "the time limit passed after 1 of 3 trials")


def test_a_search_ends_when_no_layout_is_left():
    stop = hopeless(Budget(trials=9), runs=4, best=BEST, hope=None)

    assert stop is not None
    assert stop.reason is StopReason.NONE_LEFT
    assert stop.sentence.startswith("after 4 of 9 trials every layout that may fit has run")


def test_a_search_ends_when_the_low_bound_of_the_best_layout_left_is_no_less_than_the_best_measured():
    stop = hopeless(Budget(trials=9), runs=4, best=BEST, hope=Hope(key="tp4", expected_s=2.2, low_s=2.0))

    assert stop is not None
    assert stop.reason is StopReason.NONE_CAN_WIN
    assert "tp4, is expected to take 2.2 s and at least 2 s, tp2 took 2 s" in stop.sentence


def test_a_search_goes_on_while_a_layout_may_win_or_nobody_can_say():
    budget = Budget(trials=9)

    assert hopeless(budget, runs=4, best=BEST, hope=Hope(key="tp4", expected_s=2.2, low_s=1.99)) is None
    assert hopeless(budget, runs=4, best=BEST, hope=Hope(key="tp4", expected_s=9.0, low_s=None)) is None
    assert hopeless(budget, runs=4, best=None, hope=Hope(key="tp4", expected_s=2.2, low_s=2.2)) is None


def test_nothing_cannot_win_against_no_best():
    assert not cannot_win(5.0, None)
    assert not cannot_win(None, BEST)
    assert cannot_win(2.0, BEST)
