import numpy as np
import pytest

from autotune.cost.schedules import CLOSED_FORMS, Pipe, bubble_terms, in_flight
from autotune.spec.layout import code_of
from autotune.spec.schedules import SCHEDULES


def _pipe(p: int, m: int, v: int) -> Pipe:
    return Pipe(p=np.array([float(p)]), m=np.array([float(m)]), v=np.array([float(v)]))


def _bubble(schedule: str, p: int, m: int, v: int, f: float, b: float, w: float) -> float:
    terms = bubble_terms(np.array([code_of("schedule", schedule)]), _pipe(p, m, v))
    return float(max(terms[0][0] * f + terms[1][0] * b + terms[2][0] * w, 0.0))


def _held(schedule: str, p: int, m: int, v: int, rank: int = 0) -> float:
    return float(in_flight(np.array([code_of("schedule", schedule)]), _pipe(p, m, v), np.array([rank]))[0])


def test_every_schedule_has_a_closed_form() -> None:
    assert set(CLOSED_FORMS) == set(SCHEDULES)


@pytest.mark.parametrize(
    ("schedule", "v", "expected"),
    [
        # p = 4, m = 8, and F = B = W = 1 on each rank
        ("gpipe", 1, 9.0),  # (p-1) * 3
        ("1f1b", 1, 9.0),
        ("interleaved", 3, 3.0),  # divided by v
        ("breadth-first", 3, 3.0),
        ("interleaved-zb", 3, 1.0),  # (p-1)(F+B-W)/v
        ("zb-h1", 1, 3.0),  # (p-1)(F+B-W)
        ("zb-h2", 1, 0.0),  # (p-1)(F+B-2W)
        ("zb-v", 2, 0.0),
        ("v-half", 2, 4.5),  # half of 1F1B
        ("v-min", 2, 6.0),  # two thirds of 1F1B
        ("dualpipe", 1, 2.0),  # (p/2 - 1)(F+B+W + B+W - 3W) = 1 * (3 + 2 - 3)
        ("dualpipev", 2, 3.0),  # (p - 1) of that in half passes
        ("chimera", 1, 4.0),  # (p-2)(B+W)
        ("hanayo", 2, 6.0),  # (p-1)(B+W)
        ("bitpipe", 2, 2.0),  # (p-2)(B+W)/2
        ("seq1f1b", 1, 2.25),  # 1F1B's over 4 slices
        ("chronos", 2, 12.0),  # p(F+B+W)
    ],
)
def test_the_busiest_rank_idles_as_long_as_published(schedule: str, v: int, expected: float) -> None:
    assert _bubble(schedule, 4, 8, v, 1.0, 1.0, 1.0) == pytest.approx(expected)


def test_the_bubble_of_1f1b_is_the_share_that_narayanan_states() -> None:
    # (p-1)/m of the ideal time m * (F+B+W): p = 8, m = 32: 7/32
    assert _bubble("1f1b", 8, 32, 1, 1.0, 1.0, 1.0) / (32 * 3.0) == pytest.approx(7 / 32)


def test_zb_v_waits_once_its_input_gradient_is_too_long_to_hide() -> None:
    # 2B - W - 2F = 4 - 1 - 2 = 1 of a rank's pass too long, half of it a chunk's, (p-1) = 3 times
    assert _bubble("zb-v", 4, 8, 2, 1.0, 2.0, 1.0) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("schedule", "v", "rank", "expected"),
    [
        # p = 4, m = 32
        ("gpipe", 1, 0, 32),
        ("breadth-first", 2, 0, 32),
        ("1f1b", 1, 0, 4),
        ("1f1b", 1, 1, 3),
        ("1f1b", 1, 3, 1),
        # Megatron-Bridge#3107: (2(PP-1) + (VPP-1) PP + 1) / VPP on the first rank: 4.6 at VPP 5, 4.3 at VPP 10
        ("interleaved", 5, 0, 4.6),
        ("interleaved", 10, 0, 4.3),
        ("zb-h1", 1, 3, 4),
        ("zb-h2", 1, 0, 7),
        ("zb-v", 2, 0, 4),
        ("v-half", 2, 0, 3),
        ("v-min", 2, 0, 8 / 3),
        ("dualpipe", 1, 0, 5),
        ("dualpipev", 2, 0, 4.5),
        ("seq1f1b", 1, 0, 1.75),  # (3 + 4) / 4
        ("chronos", 2, 0, 3.5),  # 3p/4 + 1/2
    ],
)
def test_a_rank_holds_as_many_micro_batches_as_published(schedule: str, v: int, rank: int, expected: float) -> None:
    assert _held(schedule, 4, 32, v, rank) == pytest.approx(expected)


@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
def test_no_rank_holds_more_micro_batches_than_a_step_has(schedule: str) -> None:
    assert _held(schedule, 8, 2, 2) <= 2


@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
def test_without_a_pipeline_there_is_no_bubble_and_one_micro_batch_in_flight(schedule: str) -> None:
    assert _bubble(schedule, 1, 8, 1, 1.0, 1.0, 1.0) == 0
    assert _held(schedule, 1, 8, 1) == 1
