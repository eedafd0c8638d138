import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.calibration.fit import calibrate, fit_factors, fit_note
from autotune.calibration.observation import Observation, observe
from autotune.cost.profile import Factors
from autotune.spec.layout import Layout
from tests.calibration.runs import GIB, predicted, run
from tests.cost.profiles import estimate_of, master_copy_profile
from tests.examples import problem
from tests.search.toy import measured

# Compute and communication of five layouts, in seconds.
FIVE = [(3.0, 0.1), (2.0, 1.0), (4.0, 2.0), (1.0, 1.5), (2.5, 0.4)]


def test_without_a_run_everything_stays_as_it_was():
    previous = Factors(compute_time=1.2, communication_time=1.4, overhead_s=0.01, memory=1.1, fitted_to=7)

    got = fit_factors([], previous=previous)

    assert got == Factors(compute_time=1.2, communication_time=1.4, overhead_s=0.01, memory=1.1, fitted_to=0)


def test_one_run_gives_one_common_scale_drawn_a_little_towards_one():
    got = fit_factors([run(3.0, 1.0, Factors(compute_time=2.0, communication_time=2.0))], previous=Factors())

    assert got.compute_time == got.communication_time
    # The run says log 2 with a deviation of 0.056; the formulas say 0, for compute and for communication, with log 2:
    # (log 2 / 0.056²) / (1 / 0.056² + 2 / log²2) = 0.987 · log 2. The soft loss gives the run a little less weight.
    assert got.compute_time == pytest.approx(2**0.987, rel=0.02)
    assert got.compute_time < 2.0
    assert (got.overhead_s, got.fitted_to) == (0.0, 1)


@pytest.mark.parametrize(
    "truth",
    [
        Factors(compute_time=1.5, communication_time=3.0, memory=1.2),
        Factors(compute_time=0.7, communication_time=1.0, memory=0.9),
    ],
)
def test_a_few_runs_give_the_factors_that_made_them(truth):
    got = fit_factors([run(*parts, truth) for parts in FIVE], previous=Factors())

    assert got.compute_time == pytest.approx(truth.compute_time, rel=0.05)
    assert got.communication_time == pytest.approx(truth.communication_time, rel=0.1)
    assert got.overhead_s == pytest.approx(truth.overhead_s, abs=0.06)
    assert got.memory == pytest.approx(truth.memory, rel=0.01)
    assert got.fitted_to == 5


def test_the_overhead_is_not_fitted_to_fewer_than_four_runs():
    truth = Factors(overhead_s=0.3)

    assert fit_factors([run(*parts, truth) for parts in FIVE[:3]], previous=Factors()).overhead_s == 0.0
    assert fit_factors([run(*parts, truth) for parts in FIVE[:4]], previous=Factors()).overhead_s > 0.05


def test_many_runs_give_the_overhead_of_a_step_too():
    got = fit_factors([run(*parts, Factors(overhead_s=0.2)) for parts in FIVE * 8], previous=Factors())

    assert got.overhead_s == pytest.approx(0.2, rel=0.2)
    assert got.compute_time == pytest.approx(1.0, rel=0.02)


def test_one_odd_run_does_not_decide():
    truth = Factors(compute_time=1.5, communication_time=1.5)
    runs = [run(*parts, truth) for parts in FIVE]
    odd = [*runs[:-1], run(*FIVE[-1], truth, error=4.0)]  # five times as slow as it should be

    got = fit_factors(odd, previous=Factors())

    # The mean of the logarithms would be off by log(5)/5, that is by 38 %.
    assert got.compute_time == pytest.approx(1.5, rel=0.12)


def test_step_times_that_do_not_count_never_move_the_time_but_their_memory_counts():
    runs = [predicted(*parts, step_time_s=90.0, time_counts=False, framework_bytes=10.0 * GIB) for parts in FIVE]
    previous = Factors(compute_time=1.1, communication_time=1.2, overhead_s=0.03)

    got = fit_factors(runs, previous=previous)

    assert (got.compute_time, got.communication_time, got.overhead_s) == (1.1, 1.2, 0.03)
    assert got.memory == pytest.approx(10 / 8, rel=0.01)


def test_memory_is_fitted_without_what_lives_outside_the_framework():
    got = fit_factors([predicted(1.0, 0.0, inside_bytes=8.0 * GIB, framework_bytes=12.0 * GIB)], previous=Factors())

    assert got.memory == pytest.approx(1.5, rel=0.02)  # 12 / 8, not 12 / (8 + 2)


def test_an_out_of_memory_raises_the_memory_to_what_it_exceeded():
    dead = predicted(1.0, 0.0, time_counts=False, exceeded_bytes=12.0 * GIB)

    assert fit_factors([dead], previous=Factors()).memory == pytest.approx(1.5, rel=0.02)


def test_an_out_of_memory_far_above_the_prediction_is_no_matter_of_scale():
    dead = predicted(1.0, 0.0, time_counts=False, exceeded_bytes=16.1 * GIB)  # more than twice the 8 GiB

    got = fit_factors([dead], previous=Factors())

    assert (got.memory, got.fitted_to) == (1.0, 0)


def test_an_out_of_memory_that_was_predicted_says_nothing_more():
    held = predicted(1.0, 0.0, framework_bytes=8.0 * GIB)
    dead = predicted(1.0, 0.0, inside_bytes=30.0 * GIB, time_counts=False, exceeded_bytes=12.0 * GIB)

    assert fit_factors([held, dead], previous=Factors()).memory == pytest.approx(1.0, abs=1e-6)


def test_parts_that_were_predicted_with_factors_are_fitted_as_if_they_had_been_predicted_without():
    truth = Factors(compute_time=1.5, communication_time=2.5, memory=1.3)
    used = Factors(compute_time=1.4, communication_time=2.0, overhead_s=0.5, memory=1.2)
    plain = [run(*parts, truth) for parts in FIVE]
    scaled = [
        Observation(
            time_parts_s={
                "forward": compute_s * 1.4,
                "tensor_parallel": communication_s * 2.0,
                "overhead": 0.5,
            },
            memory_parts_bytes={"weights": 8.0 * GIB * 1.2, "outside": 2.0 * GIB},
            predicted_with=used,
            step_time_s=one.step_time_s,
            framework_bytes=one.framework_bytes,
        )
        for (compute_s, communication_s), one in zip(FIVE, plain, strict=True)
    ]

    one, other = fit_factors(plain, previous=Factors()), fit_factors(scaled, previous=used)

    assert other.compute_time == pytest.approx(one.compute_time, rel=1e-5)
    assert other.communication_time == pytest.approx(one.communication_time, rel=1e-5)
    assert other.memory == pytest.approx(one.memory, rel=1e-5)


def test_a_part_of_the_time_that_belongs_to_no_factor_is_a_bug():
    strange = Observation(time_parts_s={"coffee": 1.0}, memory_parts_bytes={"outside": 0.0}, step_time_s=1.0)

    with pytest.raises(KeyError, match="coffee"):
        fit_factors([strange], previous=Factors())


seconds = st.floats(1e-4, 1e3)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(seconds, st.one_of(st.just(0.0), seconds), seconds, st.floats(1e6, 1e12)), max_size=8))
def test_factors_are_positive_and_finite_whatever_is_measured(many):
    runs = [
        predicted(compute_s, communication_s, step_time_s=step_s, framework_bytes=held_bytes)
        for compute_s, communication_s, step_s, held_bytes in many
    ]

    got = fit_factors(runs, previous=Factors())

    assert got.fitted_to == len(many)
    for scale in (got.compute_time, got.communication_time, got.memory):
        assert 0 < scale < np.inf
    assert 0 <= got.overhead_s < np.inf


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        (0, "no step time counts, so the predicted times are those of the formulas; no run says what memory it held"),
        (1, "one step time counts: too few to tell compute from communication, both have one scale; memory is fitted "
            "to one run"),
        (3, "3 step times count: compute and communication are fitted, too few for an overhead per step; memory is "
            "fitted to 3 runs"),
        (5, "5 step times count: compute, communication and an overhead per step are fitted; memory is fitted to 5 "
            "runs"),
    ],
)  # fmt: skip
def test_a_sentence_says_what_the_runs_were_enough_for(runs, sentence):
    assert fit_note([run(*parts, Factors()) for parts in FIVE[:runs]]) == sentence


LAYOUTS = [
    Layout(tp=8, micro_batch_size=1),
    Layout(tp=4, dp_shard=2, zero_stage=1, micro_batch_size=2),
    Layout(tp=2, dp_shard=4, zero_stage=1, micro_batch_size=1, recompute="full"),
    Layout(tp=1, dp_shard=8, zero_stage=3, micro_batch_size=1, recompute="full"),
    Layout(pp=2, dp_shard=4, zero_stage=1, micro_batch_size=1),
    Layout(cp=2, tp=2, dp_shard=2, zero_stage=1, micro_batch_size=1),
]


@pytest.mark.parametrize("truth", [Factors(compute_time=1.6, communication_time=2.5, memory=1.15), Factors(memory=0.9)])
def test_calibrating_the_cost_model_itself_finds_what_slowed_it_down(truth):
    # Here the parts do not simply scale: communication hides behind compute.
    question, profile = problem(), master_copy_profile()
    real = estimate_of(LAYOUTS, question, profile, truth)
    inside_bytes = real.memory.peak_bytes - real.memory.outside_bytes
    results = [
        measured(float(step_s), float(held)) for step_s, held in zip(real.time.step_s, inside_bytes, strict=True)
    ]

    def predict(factors: Factors) -> list[Observation]:
        estimates = estimate_of(LAYOUTS, question, profile, factors)
        seen = [
            observe(estimates, row, result, predicted_with=factors, limit_bytes=80e9, time_counts=True)
            for row, result in enumerate(results)
        ]
        return [one for one in seen if one is not None]

    got = calibrate(predict)

    assert got.compute_time == pytest.approx(truth.compute_time, rel=0.03)
    assert got.communication_time == pytest.approx(truth.communication_time, rel=0.1)
    assert got.memory == pytest.approx(truth.memory, rel=0.01)
    again = estimate_of(LAYOUTS, question, profile, got).time.step_s
    assert np.abs(again / real.time.step_s - 1).max() < 0.02
