import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import AutotuneError
from autotune.report.lookup import rows_of
from autotune.report.ranking import TIMES_RANK_NOTHING, Ranking, rank, rows_by_place
from autotune.spec.axes import AXIS_NAMES
from autotune.spec.figure import Basis
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.outcome import Failed, Measured, Status, TrialResult
from autotune.spec.verdict import Origin, Verdict
from tests.examples import GIB
from tests.report.reports import KEYS, example_table, measured, out_of_memory, scored_table


def order(ranking: Ranking) -> list[tuple[str, int | None]]:
    return [(ranked.key, ranked.place) for ranked in ranking.layouts]


def test_what_fits_or_may_fit_ranks_by_prediction() -> None:
    # Steps of 10, 9.5, 12.25 and 11 s; the fifth, at 8 s, is over the limit.
    ranking = rank(example_table(), {}, top=20)

    assert order(ranking) == [(KEYS[1], 1), (KEYS[0], 2), (KEYS[3], 3), (KEYS[2], 4)]
    assert ranking.winner is ranking.layouts[0]
    assert ranking.nearest_miss is None


def test_a_measured_time_ranks_by_itself_among_the_predicted_ones() -> None:
    # 10 s predicted, 11.5 s measured: behind the 11 s that are predicted for another.
    ranking = rank(example_table(), {KEYS[0]: measured(11.5)}, top=20)

    assert order(ranking) == [(KEYS[1], 1), (KEYS[3], 2), (KEYS[0], 3), (KEYS[2], 4)]
    assert ranking.layouts[2].basis is Basis.MEASURED
    assert ranking.layouts[2].measured_s == 11.5


def test_the_winner_is_the_fastest_that_ran_and_a_note_names_a_better_prediction() -> None:
    ranking = rank(example_table(), {KEYS[0]: measured(11.5), KEYS[2]: measured(11.75)}, top=20)

    assert ranking.winner is not None
    assert (ranking.winner.key, ranking.winner.place) == (KEYS[0], 3)
    note = ranking.notes[0]
    assert KEYS[1] in note
    assert "did not run" in note


def test_a_lead_within_the_scatter_of_the_steps_is_not_settled() -> None:
    # Steps of the trial at 9 s lie between 0.99 and 1.02 of it, so 0.27 s apart: 9.2 s is within that, 10 s is not.
    near = rank(example_table(), {KEYS[0]: measured(9.0), KEYS[2]: measured(9.2)}, top=20)
    far = rank(example_table(), {KEYS[0]: measured(9.0), KEYS[2]: measured(10.0)}, top=20)

    (note,) = near.notes
    assert "differ by up to 270.0 ms, and 1 other layout here is within that" in note
    assert far.notes == ()


def test_measured_times_that_do_not_count_rank_nothing() -> None:
    trials: dict[str, TrialResult] = {KEYS[0]: measured(1.0)}
    ranking = rank(example_table(), trials, top=20, time_counts=False)

    assert order(ranking) == order(rank(example_table(), {}, top=20))
    assert ranking.winner is ranking.layouts[0]
    assert ranking.notes == (TIMES_RANK_NOTHING,)
    ran = ranking.layouts[1]
    assert (ran.measured_s, ran.basis, ran.ranking_s) == (1.0, Basis.DATASHEET, 10.0)
    assert ran.tokens_per_s_per_gpu == pytest.approx(8192 * 1024 / (10.0 * 512))


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(Status.OOM, Verdict.OUT_OF_MEMORY), (Status.TIMEOUT, Verdict.FAILED), (Status.CRASH, Verdict.FAILED)],
)
def test_a_failed_layout_has_no_place_and_says_why(status: Status, verdict: Verdict) -> None:
    ranking = rank(example_table(), {KEYS[1]: Failed(status=status, evidence="rank-3: it died")}, top=20)

    assert order(ranking) == [(KEYS[0], 1), (KEYS[3], 2), (KEYS[2], 3), (KEYS[1], None)]
    failed = ranking.layouts[-1]
    assert failed.verdict is verdict
    assert [(reason.code, reason.message) for reason in failed.reasons] == [(status.value, "rank-3: it died")]


def test_an_interrupted_trial_says_nothing() -> None:
    trials: dict[str, TrialResult] = {KEYS[1]: Failed(status=Status.INTERRUPTED, evidence="Ctrl-C")}
    ranking = rank(example_table(), trials, top=20)

    assert order(ranking) == order(rank(example_table(), {}, top=20))
    assert ranking.layouts[0].verdict is Verdict.BORDERLINE


def test_what_ran_fits_whatever_was_predicted() -> None:
    ranking = rank(example_table(), {KEYS[4]: measured(8.5)}, top=20)

    assert order(ranking)[0] == (KEYS[4], 1)
    assert ranking.layouts[0].verdict is Verdict.FITS
    assert ranking.layouts[0].reasons == ()


def test_what_ran_and_the_baseline_are_kept_below_the_top_with_their_places() -> None:
    trials: dict[str, TrialResult] = {KEYS[2]: measured(12.0)}
    baseline = Layout.from_key(KEYS[4])
    given = dict.fromkeys(AXIS_NAMES, Origin.GIVEN)
    ranking = rank(example_table(), trials, top=1, baseline=baseline, baseline_origins=given)

    assert order(ranking) == [(KEYS[1], 1), (KEYS[2], 4), (KEYS[4], None)]
    assert [ranked.baseline for ranked in ranking.layouts] == [False, False, True]
    assert ranking.layouts[2].origins["tp"] is Origin.GIVEN
    assert ranking.layouts[0].origins["tp"] is Origin.SEARCHED


def test_when_nothing_fits_the_nearest_miss_is_the_least_over_the_limit() -> None:
    # 100, 85 and 90 GiB of 79.
    layouts = [Layout.from_key(key) for key in KEYS[:3]]
    ranking = rank(scored_table(layouts, [1.0, 2.0, 3.0], [100 * GIB, 85 * GIB, 90 * GIB]), {}, top=20)

    assert ranking.winner is None
    assert ranking.nearest_miss is not None
    assert ranking.nearest_miss.key == KEYS[1]
    assert order(ranking) == [(KEYS[1], None)]


def test_the_nearest_miss_counts_the_memory_of_the_host_too() -> None:
    # A node has 2048 GiB: the first is over it by half, the second over the GPU's 79 GiB by 14 %.
    layouts = [Layout.from_key(key) for key in KEYS[:2]]
    scored = scored_table(layouts, [1.0, 2.0], [10 * GIB, 90 * GIB], host_bytes=[3072 * GIB, 0])

    assert rank(scored, {}, top=20).nearest_miss == rank(scored, {}, top=20).layouts[0]
    assert rank(scored, {}, top=20).layouts[0].key == KEYS[1]


def test_an_empty_table_has_an_empty_ranking() -> None:
    ranking = rank(scored_table([], [], []), {}, top=20)

    assert (ranking.layouts, ranking.winner, ranking.nearest_miss) == ((), None, None)


def test_of_equal_times_the_layout_that_holds_less_comes_first() -> None:
    layouts = [Layout.from_key(key) for key in KEYS[:3]]
    ranking = rank(scored_table(layouts, [2.0, 2.0, 2.0], [30 * GIB, 10 * GIB, 20 * GIB]), {}, top=2)

    assert order(ranking) == [(KEYS[1], 1), (KEYS[2], 2)]


def test_a_borderline_winner_is_warned_about() -> None:
    (warning,) = rank(example_table(), {}, top=20).warnings

    assert f"{KEYS[1]} is borderline" in warning
    assert "81.0 GiB" in warning
    assert "79.0 GiB" in warning
    assert rank(example_table(), {KEYS[1]: measured(9.0)}, top=20).warnings == ()


def test_a_trial_of_a_layout_that_the_table_does_not_hold_is_a_bug() -> None:
    with pytest.raises(AutotuneError, match="does not hold tp2-mbs1"):
        rank(example_table(), {"tp2-mbs1": measured(1.0)}, top=20)


def test_rows_are_found_by_key() -> None:
    table = LayoutTable.of(Layout.from_key(key) for key in KEYS)

    assert rows_of(table, [KEYS[3], KEYS[0]]) == {KEYS[3]: 3, KEYS[0]: 0}
    assert rows_of(table, []) == {}


outcomes = st.one_of(
    st.none(),
    st.floats(0.5, 20.0).map(measured),
    st.just(out_of_memory()),
    st.sampled_from(Status).map(lambda status: Failed(status=status, evidence="seen")),
)
rows = st.tuples(st.sampled_from([1.0, 1.5, 2.0, 7.0]), st.sampled_from([10.0, 20.0, 75.0, 90.0]), outcomes)


@given(st.lists(rows, min_size=1, max_size=12), st.integers(1, 14), st.booleans(), st.booleans())
def test_places_are_whole_and_failures_have_none(
    many: list[tuple[float, float, TrialResult | None]], top: int, time_counts: bool, with_baseline: bool
) -> None:
    layouts = [Layout(micro_batch_size=size) for size in range(1, len(many) + 1)]
    scored = scored_table(layouts, [row[0] for row in many], [row[1] * GIB for row in many])
    trials = {layout.key: row[2] for layout, row in zip(layouts, many, strict=True) if row[2] is not None}
    baseline = layouts[-1] if with_baseline else None

    ranking = rank(scored, trials, top=top, baseline=baseline, time_counts=time_counts)
    everything = rank(scored, trials, top=len(many), baseline=baseline, time_counts=time_counts)

    places = [ranked.place for ranked in ranking.layouts if ranked.place is not None]
    assert places[:top] == list(range(1, min(top, len(places)) + 1))
    assert places == sorted(set(places))
    assert [ranked.place for ranked in everything.layouts if ranked.place is not None] == list(
        range(1, int(np.isfinite(everything.ranking_s).sum()) + 1)
    )
    whole = {ranked.key: ranked.place for ranked in everything.layouts}
    assert all(whole[ranked.key] == ranked.place for ranked in ranking.layouts)

    shown = {ranked.key: ranked for ranked in ranking.layouts}
    assert set(trials) <= set(shown)
    assert baseline is None or shown[baseline.key].baseline
    for key, result in trials.items():
        if isinstance(result, Failed) and result.status is not Status.INTERRUPTED:
            assert shown[key].place is None
        elif isinstance(result, Measured):
            assert shown[key].place is not None
    times = [ranked.ranking_s for ranked in ranking.layouts if ranked.place is not None]
    assert times == sorted(times)
    assert (ranking.winner is None) == (not places)
    assert (ranking.nearest_miss is None) == bool(places)


def test_a_million_layouts_are_ranked_in_a_fraction_of_a_second() -> None:
    """Processor seconds, and well above an idle core's, so that only a loop over rows or a full sort can fail it."""
    random = np.random.default_rng(0)
    count = 1_000_000
    columns = {"tp": random.integers(1, 9, count), "micro_batch_size": np.arange(1, count + 1)}
    table = LayoutTable.from_columns(columns)
    scored = scored_table(table, random.uniform(1.0, 9.0, count), random.uniform(10.0, 100.0, count) * GIB)
    trials: dict[str, TrialResult] = {table.layout(row).key: measured(5.0) for row in range(0, count, count // 8)}

    start = time.process_time()
    ranking = rank(scored, trials, top=20)
    elapsed_s = time.process_time() - start

    assert len(ranking.layouts) >= 20
    assert elapsed_s < 0.6


def test_more_places_than_rows_are_all_the_rows_that_rank() -> None:
    got = rows_by_place(np.array([3.0, np.inf, 1.0]), np.zeros(3), first=10)

    assert got.tolist() == [2, 0]
