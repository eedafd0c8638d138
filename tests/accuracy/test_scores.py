import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from autotune.accuracy.scores import (
    Confusion,
    bias,
    confusion,
    errors,
    kendall,
    mape,
    mean_of,
    median_error,
    median_of,
    regret,
    spearman,
)

values = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=2, max_size=12)


def test_an_error_is_predicted_over_measured_less_one():
    assert errors([110.0, 80.0], [100.0, 100.0]) == pytest.approx([0.1, -0.2])


def test_mape_forgets_the_sign_and_bias_keeps_it():
    # |+0.1|, |-0.2|, |+0.4|: mean 0.7 / 3; median 0.2; signed mean 0.3 / 3.
    relative = [0.1, -0.2, 0.4]

    assert mape(relative) == pytest.approx(0.7 / 3)
    assert median_error(relative) == pytest.approx(0.2)
    assert bias(relative) == pytest.approx(0.1)


def test_nothing_has_no_error():
    assert (mape([]), median_error([]), bias([])) == (None, None, None)


def test_spearman_of_one_swapped_pair():
    # Ranks 1 2 3 4 against 1 3 2 4: 1 - 6·Σd²/(n(n²-1)) = 1 - 6·2/(4·15) = 0.8.
    assert spearman([1, 2, 3, 4], [10, 30, 20, 40]) == pytest.approx(0.8)


def test_kendall_of_one_swapped_pair():
    # 5 of 6 pairs in the same order, 1 in the opposite one: 4/6.
    assert kendall([1, 2, 3, 4], [10, 30, 20, 40]) == pytest.approx(4 / 6)


def test_a_constant_prediction_ranks_nothing():
    assert (spearman([5, 5, 5], [1, 2, 3]), kendall([5, 5, 5], [1, 2, 3])) == (0.0, 0.0)


@given(values)
def test_rank_correlations_agree_with_those_of_scipy(pairs):
    predicted, measured = zip(*pairs, strict=True)
    if len(set(predicted)) > 1 and len(set(measured)) > 1:
        assert spearman(predicted, measured) == pytest.approx(spearmanr(predicted, measured).statistic)
        assert kendall(predicted, measured) == pytest.approx(kendalltau(predicted, measured).statistic)


def test_regret_is_what_the_first_pick_costs_over_the_best():
    # The second is predicted to be the fastest and took 12; the best took 10.
    assert regret([3.0, 1.0, 2.0], [10.0, 12.0, 11.0]) == pytest.approx(0.2)


def test_the_right_first_pick_has_no_regret_however_wrong_its_time():
    assert regret([100.0, 200.0], [1.0, 1.5]) == 0


def test_first_picks_that_are_predicted_alike_share_their_mean():
    assert regret([1.0, 1.0, 2.0], [10.0, 14.0, 20.0]) == pytest.approx(0.2)


def test_out_of_memory_figures_from_counts():
    # 3 caught, 1 missed, 2 false alarms: precision 3/5, recall 3/4, F1 2·3/(6+1+2), false fits 1/4.
    found = Confusion(caught=3, missed=1, false_alarms=2, fitting=4)

    assert found.labels == 10
    assert found.precision == pytest.approx(0.6)
    assert found.recall == pytest.approx(0.75)
    assert found.f1 == pytest.approx(6 / 9)
    assert found.false_fits == pytest.approx(0.25)


def test_an_oracle_on_labels_of_which_a_tenth_were_crashes_has_the_f1_that_is_possible():
    # 292 labels of which 29 were no out-of-memory: 263 caught; F1 = 2·263/(2·263+29) = 0.948, false fits 9.9 %.
    found = Confusion(caught=263, missed=29, false_alarms=0, fitting=320)

    assert found.f1 == pytest.approx(0.948, abs=5e-4)
    assert found.false_fits == pytest.approx(0.099, abs=5e-4)


def test_labels_and_predictions_are_counted_by_pairs():
    found = confusion([True, True, False, False, False], [True, False, True, False, False])

    assert found == Confusion(caught=1, missed=1, false_alarms=1, fitting=2)


def test_without_a_run_that_died_there_is_no_f1():
    found = Confusion(caught=0, missed=0, false_alarms=2, fitting=4)

    assert (found.f1, found.recall, found.false_fits) == (None, None, None)


def test_means_and_medians_leave_out_what_is_not_known():
    assert (mean_of([1.0, None, 3.0]), median_of([None, 1.0, 9.0, 2.0])) == (2.0, 2.0)
    assert (mean_of([None]), median_of([])) == (None, None)
