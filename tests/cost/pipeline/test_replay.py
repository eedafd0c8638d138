"""Replays small enough to be drawn by hand."""

from dataclasses import replace

import pytest

from autotune.cost.pipeline.costs import StageCosts, even_costs
from autotune.cost.pipeline.operations import Kind, Operation, Schedule, broken_promises, folded, looped, mirrored
from autotune.cost.pipeline.plan import planned
from autotune.cost.pipeline.registry import build
from autotune.cost.pipeline.replay import replay
from autotune.errors import AutotuneError


def test_two_ranks_of_1f1b_with_a_slow_second_stage_and_a_transfer() -> None:
    # rank 0: F0 0-1, F1 1-2, wait, B0, B1          rank 1: F0 at 1 + 0.5
    # rank 1: F0 1.5-3.5, BW0 3.5-7.5, F1 7.5-9.5, BW1 9.5-13.5
    # rank 0: BW0 at 7.5 + 0.5 = 8-10, BW1 at 13.5 + 0.5 = 14-16
    costs = StageCosts(
        forward_s=(1, 2), input_gradient_s=(1, 2), weight_gradient_s=(1, 2), activation_bytes=(10, 20), transfer_s=0.5
    )
    timeline = replay(build("1f1b", pp=2, micro_batches=2), costs)

    assert timeline.start_s == ((0, 1, 8, 14), (1.5, 3.5, 7.5, 9.5))
    assert timeline.end_s == ((1, 2, 10, 16), (3.5, 7.5, 9.5, 13.5))
    assert timeline.makespan_s == 16
    assert timeline.busy_s == (6, 12)
    assert timeline.bubble_share == pytest.approx(1 - 18 / 32)
    assert timeline.peak_bytes == (20, 20)
    assert [(bubble.start_s, bubble.length_s) for bubble in timeline.bubbles(0)] == [(2, 6), (10, 4)]
    assert [(bubble.start_s, bubble.length_s) for bubble in timeline.bubbles(1)] == [(0, 1.5), (13.5, 2.5)]


def test_a_bubble_knows_what_is_held_and_what_is_free_below_a_limit() -> None:
    # rank 0 waits with two micro-batches after its forwards, with one after its first backward
    costs = replace(even_costs(2, activation_bytes=10), resident_bytes=(100, 50))
    timeline = replay(build("gpipe", pp=2, micro_batches=2), costs)

    first = timeline.bubbles(0, limit_bytes=200)[0]
    assert (first.live_bytes, first.free_bytes) == (120, 80)
    assert timeline.bubbles(1)[0].live_bytes == 50  # before its first forward
    assert timeline.bubbles(1)[0].free_bytes == 120 - 50  # below the fullest rank's peak


def test_activations_are_freed_in_part_by_the_input_gradient() -> None:
    # one rank, two micro-batches, W one late: F0 10, B0 -> 6, F1 -> 16, B1 -> 12, W0 -> 6, W1 -> 0
    f, b, w = Kind.FORWARD, Kind.INPUT_GRADIENT, Kind.WEIGHT_GRADIENT
    order = tuple(Operation(kind, 0, n) for kind, n in ((f, 0), (b, 0), (f, 1), (b, 1), (w, 0), (w, 1)))
    schedule = Schedule(name="one", ranks=(order,), placement=((0,),), micro_batches=2)
    timeline = replay(schedule, replace(even_costs(1, activation_bytes=10), freed_at_input_gradient=0.4))

    assert timeline.peak_bytes == (16,)


def test_a_recomputed_stage_keeps_its_input_and_rebuilds_the_rest_in_a_longer_backward() -> None:
    # two forwards keep 1 each; a backward of 1 + 2 rebuilds 10, and works with 4 more: 2 + 10 + 4
    schedule = replace(build("gpipe", pp=1, micro_batches=2), recomputed_stages=frozenset({0}))
    costs = replace(even_costs(1, activation_bytes=10), boundary_bytes=(1,), transient_bytes=(4,))
    timeline = replay(schedule, costs)

    assert timeline.makespan_s == 2 * 1 + 2 * 3
    assert timeline.peak_bytes == (16,)


def test_what_a_fused_pair_sends_leaves_at_the_end_of_both() -> None:
    # rank 0 runs F1 and BW0 as one from 3 to 6, one hidden: rank 1 gets F1 at 5, not at 4
    f, bw = Kind.FORWARD, Kind.BACKWARD
    schedule = Schedule(
        name="pair",
        ranks=(
            (Operation(f, 0, 0), Operation(f, 0, 1), Operation(bw, 0, 0), Operation(bw, 0, 1)),
            (Operation(f, 1, 0), Operation(bw, 1, 0), Operation(f, 1, 1), Operation(bw, 1, 1)),
        ),
        placement=(looped(2, 1),),
        micro_batches=2,
        fused=frozenset({Operation(f, 0, 1)}),
    )
    timeline = replay(schedule, even_costs(2))

    # rank 1: F0 1-2, BW0 2-4; rank 0: pair 4-7; rank 1: F1 7-8, BW1 8-10; rank 0: BW1 10-12
    assert timeline.start_s[0] == (0, 4, 5, 10)
    assert timeline.start_s[1] == (1, 2, 7, 8)
    assert replay(schedule, replace(even_costs(2), hidden_in_pair_s=1)).makespan_s == 11


def test_ranks_that_wait_for_each_other_are_a_bug_that_is_named() -> None:
    f, bw = Kind.FORWARD, Kind.BACKWARD
    schedule = Schedule(
        name="circle",
        ranks=((Operation(bw, 0, 0), Operation(f, 0, 0)), (Operation(f, 1, 0), Operation(bw, 1, 0))),
        placement=(looped(2, 1),),
        micro_batches=1,
    )

    with pytest.raises(AutotuneError, match="circle deadlocks: rank 0 at"):
        planned(schedule)


def test_a_plan_replays_as_its_schedule_does() -> None:
    schedule = build("dualpipev", pp=4, micro_batches=8)
    costs = even_costs(8, input_gradient_s=1.3, transfer_s=0.1)

    assert replay(planned(schedule), costs) == replay(schedule, costs)


def test_a_table_with_a_missing_a_foreign_and_a_misplaced_operation_is_found_out() -> None:
    good = build("1f1b", pp=2, micro_batches=1)
    missing = replace(good, ranks=(good.ranks[0][:1], good.ranks[1]))
    foreign = replace(good, ranks=((*good.ranks[0], Operation(Kind.FORWARD, 0, 7)), good.ranks[1]))
    misplaced = replace(good, ranks=good.ranks[::-1])

    assert "F, BW, B, W [1, 0, 0, 0] times" in broken_promises(missing)[0]
    assert broken_promises(foreign) == ["F of stage 0, micro-batch 7, replica 0, slice 0 is not of this schedule"]
    assert len(broken_promises(misplaced)) == 4


def test_placements_loop_fold_and_mirror() -> None:
    assert looped(3, 2) == (0, 1, 2, 0, 1, 2)
    assert folded(3, 4) == (0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0)
    assert mirrored(folded(3, 2)) == (2, 1, 0, 0, 1, 2)


def test_a_stage_with_more_layers_holds_the_others_up() -> None:
    # the middle stage takes twice as long: 8 micro-batches of 2·3, plus the fill and drain of the other two stages
    costs = StageCosts(
        forward_s=(1, 2, 1), input_gradient_s=(1, 2, 1), weight_gradient_s=(1, 2, 1), activation_bytes=(1, 2, 1)
    )
    timeline = replay(build("1f1b", pp=3, micro_batches=8), costs)

    # F of stage 0, then the middle rank is busy 8·6 s but for its waits for the last stage, then BW of stage 0
    assert timeline.busy_s == (24, 48, 24)
    assert timeline.makespan_s >= 1 + 48 + 2
    assert timeline.peak_bytes == (3, 4, 1)
