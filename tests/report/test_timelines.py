"""A replayed schedule as text, trace, picture and JSON."""

import json
import re
from collections.abc import Iterator

import pytest

from autotune.cost.pipeline.costs import even_costs
from autotune.cost.pipeline.operations import Kind
from autotune.cost.pipeline.registry import build
from autotune.cost.pipeline.replay import replay
from autotune.cost.pipeline.timeline import Timeline
from autotune.report.timeline_json import timeline_json
from autotune.report.timeline_picture import picture
from autotune.report.timeline_text import bubble_lines, legend, plain_text, summary_lines, timeline_rows
from autotune.report.timeline_trace import chrome_trace


def two_ranks() -> Timeline:
    """F0 and F1 of rank 0 at 0 and 1, of rank 1 at 1 and 4; B0 at 2-4 and 4-6, B1 at 5-7 and 7-9."""
    return replay(build("1f1b", pp=2, micro_batches=2), even_costs(2))


def every_schedule() -> Iterator[Timeline]:
    for name, vpp in (("dualpipe", 1), ("zb-v", 2), ("chronos", 2), ("seq1f1b", 1), ("bitpipe", 2)):
        yield replay(build(name, pp=4, micro_batches=8), even_costs(4 * vpp))


def test_a_drawing_has_three_columns_for_the_shortest_pass_and_dots_for_waits() -> None:
    rows = [plain_text(row) for row in timeline_rows(two_ranks())]

    assert rows == [
        "rank 0 F0 F1 ......B0    ...B1    ",
        "rank 1 ...F0 B0    F1 B1    ......",
    ]


def test_every_cell_says_which_kind_of_pass_it_is() -> None:
    assert [cell.kind for cell in timeline_rows(two_ranks())[0].cells] == [
        Kind.FORWARD, Kind.FORWARD, None, Kind.BACKWARD, None, Kind.BACKWARD,
    ]  # fmt: skip


def test_a_drawing_fits_the_width_it_is_given_and_all_rows_are_as_long() -> None:
    for timeline in every_schedule():
        for width in (40, 100, None):
            lengths = {len(plain_text(row)) for row in timeline_rows(timeline, width=width)}
            assert len(lengths) == 1
            assert width is None or lengths.pop() <= width


def test_chunks_slices_and_copies_of_the_weights_can_be_told_apart() -> None:
    def drawn(name: str, vpp: int, **options: int) -> str:
        schedule = build(name, pp=2, micro_batches=4, **options)
        return " ".join(plain_text(row) for row in timeline_rows(replay(schedule, even_costs(2 * vpp))))

    assert "F3b" in drawn("zb-v", 2)
    assert "B3.1" in drawn("seq1f1b", 1, parts=2)
    assert "f1" in drawn("chimera", 1)
    assert "the second copy of the weights" in legend(build("chimera", pp=2, micro_batches=4))
    assert "W weight gradient" in legend(build("zb-h1", pp=2, micro_batches=4))


def test_the_summary_and_the_bubbles_are_those_of_the_timeline() -> None:
    # 9 s, busy 6 s each: a third is idle; rank 0 waits at 2-4 with both micro-batches, at 6-7 with one
    timeline = two_ranks()

    assert summary_lines(timeline) == [
        "step time      9.00",
        "without a barrier between steps  9.00",
        "bubble share   33.3 %",
        "peak memory    rank 0  2.00",
        "peak memory    rank 1  1.00",
    ]
    assert [line.split() for line in bubble_lines(timeline)] == [
        ["rank", "start", "length", "free", "memory"],
        ["0", "2.00", "2.00", "0.00"],
        ["0", "6.00", "1.00", "1.00"],
        ["1", "0.00", "1.00", "2.00"],
        ["1", "7.00", "2.00", "2.00"],
    ]


def test_a_trace_lasts_as_long_as_the_step_and_holds_every_pass() -> None:
    for timeline in every_schedule():
        events = json.loads(chrome_trace(timeline))["traceEvents"]
        passes = [event for event in events if event["ph"] == "X"]

        assert max(event["ts"] + event["dur"] for event in passes) == pytest.approx(timeline.makespan_s * 1e6)
        assert len(passes) == sum(len(operations) for operations in timeline.schedule.ranks)
        assert {event["tid"] for event in passes} == set(range(4))
        for rank, busy_s in enumerate(timeline.busy_s):
            spent_us = sum(event["dur"] for event in passes if event["tid"] == rank)
            assert spent_us == pytest.approx(busy_s * 1e6)


def test_the_counters_of_a_trace_peak_at_the_peaks() -> None:
    timeline = two_ranks()
    events = json.loads(chrome_trace(timeline))["traceEvents"]

    for rank, peak in enumerate(timeline.peak_bytes):
        held = [event["args"]["bytes"] for event in events if event["name"] == f"held by rank {rank}"]
        assert (max(held), held[-1]) == (peak, 0)


@pytest.mark.parametrize(("image_format", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_a_picture_is_an_image_and_the_same_every_time(image_format, begins) -> None:
    first, second = (
        picture(two_ranks(), image_format=image_format, time_unit="s", memory_unit="GiB") for _ in range(2)
    )

    assert first.startswith(begins)
    assert first == second


def test_a_picture_names_ranks_passes_and_units() -> None:
    dualpipe = next(every_schedule())
    drawn = picture(dualpipe, image_format="svg", time_unit="seconds", memory_unit="GiB").decode()
    words = set(re.findall(r">([^<>]+)</text>", drawn))

    assert {"rank 0", "rank 3", "forward", "backward", "weight gradient", "time (seconds)", "held (GiB)"} <= words
    assert any("2 copies of the weights" in word for word in words)


def test_the_json_holds_ranks_bubbles_and_operations() -> None:
    document = json.loads(timeline_json(two_ranks(), engines=["torch"], time_unit="s", memory_unit="GiB"))

    assert document["step_time"] == 9
    assert document["bubble_share"] == pytest.approx(1 / 3)
    assert document["launchable"] is True
    assert [rank["peak_memory"] for rank in document["ranks"]] == [2, 1]
    assert document["ranks"][0]["bubbles"][0] == {"start": 2, "length": 2, "free_memory": 0}
    assert document["ranks"][1]["stages"] == [[1]]
    assert document["ranks"][1]["operations"][1] == {
        "kind": "BW", "stage": 1, "micro_batch": 0, "weight_copy": 0, "part": 0, "start": 2, "end": 4,
    }  # fmt: skip
