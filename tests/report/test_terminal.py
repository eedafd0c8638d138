from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from autotune.report.ranked import Report
from autotune.report.terminal import print_report, ranked_lines
from autotune.report.wording import percent, printable, rate
from tests.golden.reports import check_text, checked, nothing_fits, tune_text
from tests.report.reports import KEYS, example_table, report_of, tried_report

TERMINAL = "\x1b[31m[red]llama[/red]\r\n\u202e[link=http://x]"


def hostile(report: Report) -> Report:
    """Names from files with markup, escape codes and a mark that turns the direction of text."""
    model = replace(report.problem.model, name=TERMINAL)
    return replace(report, problem=replace(report.problem, model=model), warnings=(TERMINAL,), stop_reason=TERMINAL)


@pytest.mark.parametrize("width", [20, 40, 80, 100, 140, 200])
def test_a_key_that_the_width_can_hold_is_never_broken(width: int) -> None:
    text = tune_text(tried_report(), width)

    for key in (ranked.key for ranked in tried_report().layouts):
        if len(key) + 4 <= width:
            assert key in text
        assert key in text.replace("\n", "").replace(" ", "")


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_line_of_the_table_is_wider_than_the_terminal(width: int) -> None:
    assert max(len(line) for line in ranked_lines(tried_report(), width)) <= width
    assert all(line == line.rstrip() for line in tune_text(tried_report(), width).splitlines())


def test_every_column_that_was_asked_for_is_there() -> None:
    text = tune_text(tried_report(), 200)

    for words in ("predicted", "measured", "tokens/s", "MFU", "peak", "limit", "basis", "verdict"):
        assert words in text
    (line,) = [line for line in text.splitlines() if line.startswith("2")]
    assert line.split() == [
        "2", KEYS[0], "10.00", "s", "10.50", "s", "1,560", "8.1", "%", "60.0", "GiB", "76", "%", "measured", "fits",
    ]  # fmt: skip


def test_names_from_files_are_neither_markup_nor_escape_codes() -> None:
    file = StringIO()
    console = Console(file=file, width=100, force_terminal=True, color_system="truecolor")

    print_report(hostile(tried_report()), console)

    text = file.getvalue()
    assert "[red]llama[/red]" in text
    assert "\x1b[31m[red]" not in text
    assert "\u202e" not in text
    assert "\x1b]8" not in text


def test_without_colour_the_winner_and_the_failures_are_still_told_apart() -> None:
    text = tune_text(tried_report(), 100)

    assert "\x1b" not in text
    assert f"1 {KEYS[2]} winner" in text
    assert f"{KEYS[3]} baseline" in text
    assert f"– {KEYS[1]}" in text
    assert "out-of-memory: rank-3: tried to" in text


def test_a_path_is_on_one_line_however_long() -> None:
    run = "results/" + "long-" * 40 + "name"

    assert f"run folder: {run}\n" in tune_text(replace(tried_report(), run=run), 80)


def test_nothing_fits_is_said_with_the_nearest_miss_and_why() -> None:
    text = tune_text(nothing_fits(), 100)

    assert f"nothing fits; the nearest miss is {KEYS[4]}" in text
    assert "memory-limit: the fullest stage (0) needs 90.0 GiB" in text
    assert "export" not in text


def test_no_legal_layout_is_said() -> None:
    report = replace(
        report_of(example_table()), layouts=(), winner=None, space=replace(tried_report().space, valid=0, infeasible=0)
    )

    text = tune_text(report, 80)

    assert "no layout is legal" in text
    assert "no layout of 1,005 combinations is legal" in text


def test_check_shows_memory_limit_headroom_and_time() -> None:
    lines = [line.split() for line in check_text(checked(KEYS[0]), 80).splitlines()]

    # 79 - 60 and 79 - 1.08 · 60 GiB.
    for line in ("weights 40.0 GiB 67 %", "peak 60.0 GiB", "upper bound 64.8 GiB", "limit 79.0 GiB",
                 "headroom over the peak 19.0 GiB", "headroom over the upper bound 14.2 GiB",
                 "step time predicted 10.00 s", "forward 7.50 s 75 %"):  # fmt: skip
        assert line.split() in lines


@pytest.mark.parametrize(
    ("share", "text"), [(0.9, "90 %"), (0.999, "99 %"), (1.0, "100 %"), (1.001, "101 %"), (0.0, "0 %"), (1.14, "114 %")]
)
def test_a_limit_that_is_kept_never_reads_as_a_broken_one(share: float, text: str) -> None:
    assert percent(share) == text


def test_small_rates_keep_three_digits() -> None:
    assert [rate(per_s) for per_s in (12345.6, 100.2, 34.56, 0.0123)] == ["12,346", "100", "34.6", "0.0123"]


def test_control_characters_become_visible() -> None:
    assert printable("a\x1b[1mb\x07\u202ec\nd") == "a�[1mb��c d"
