from dataclasses import replace

import pytest

from autotune.report.markdown import code, escape, report_markdown
from autotune.spec.outcome import Failed, Status
from tests.golden.reports import nothing_fits
from tests.report.reports import KEYS, example_table, report_of, tried_report

HOSTILE = "a|b `c` <img src=x onerror=alert(1)> [d](http://e) *f* _g_ &amp;\n# h"


def test_every_section_is_there() -> None:
    text = report_markdown(tried_report())

    for title in ("Ranking", "The winner by part", "Trials", "The space", "How this was made"):
        assert f"\n## {title}\n" in text
    assert "\n## Warnings\n" not in text


def test_every_row_of_a_table_has_the_cells_of_its_title() -> None:
    report = tried_report()
    evidence = Failed(status=Status.CRASH, evidence=HOSTILE)
    layouts = tuple(replace(ranked, result=evidence) if ranked.result else ranked for ranked in report.layouts)

    for table in report_markdown(replace(report, layouts=layouts)).split("\n\n"):
        rows = [line for line in table.splitlines() if line.startswith("|")]
        assert len({line.replace("\\|", "").count("|") for line in rows}) <= 1


def test_a_failed_trial_is_listed_with_its_evidence() -> None:
    (row,) = [line for line in report_markdown(tried_report()).splitlines() if "tried to allocate" in line]

    assert KEYS[1] in row
    assert "out-of-memory" in row


def test_names_from_files_become_neither_html_nor_markdown() -> None:
    report = tried_report()
    model = replace(report.problem.model, name=HOSTILE)
    changed = replace(report, problem=replace(report.problem, model=model), warnings=(HOSTILE,))

    text = report_markdown(changed)

    assert "<img" not in text
    assert "[d](http" not in text.replace(r"\[d\](http", "")
    assert "\n# h" not in text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", r"a\|b"),
        ("`x`", r"\`x\`"),
        ("<b>", "&lt;b&gt;"),
        ("a & b", "a &amp; b"),
        ("&lt;", "&amp;lt;"),
        ("[x](y)", r"\[x\](y)"),
        ("dp_shard", r"dp\_shard"),
        ("one\ntwo", "one two"),
        ("\\", "\\\\"),
    ],
)
def test_what_markdown_reads_is_escaped(text: str, escaped: str) -> None:
    assert escape(text) == escaped


@pytest.mark.parametrize(("text", "span"), [("a", "`a`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a|b", r"`a\|b`")])
def test_a_code_span_cannot_be_closed_from_within(text: str, span: str) -> None:
    assert code(text) == span


def test_a_command_with_backticks_stays_in_its_block() -> None:
    text = report_markdown(replace(tried_report(), command="autotune tune --model ```x"))

    assert "\n````\nautotune tune --model ```x\n````\n" in text


def test_how_to_export_is_the_quoted_command() -> None:
    text = report_markdown(replace(tried_report(), run="my results/run 1"))

    assert "\nautotune export 'my results/run 1' --place 1 --to megatron-lm\n" in text


def test_nothing_fits_is_said_with_the_reason() -> None:
    text = report_markdown(nothing_fits())

    assert "**No winner:** nothing fits; the nearest miss is shard512-z3-mbs1." in text
    assert "- memory-limit: the fullest stage (0) needs 90.0 GiB" in text
    assert "\n## The nearest miss by part\n" in text
    assert "autotune export" not in text


def test_a_report_without_trials_has_no_section_of_trials() -> None:
    text = report_markdown(report_of(example_table()))

    assert "\n## Trials\n" not in text
    assert "\n## Warnings\n" in text


def test_what_the_trials_ran_with_is_said_once() -> None:
    text = report_markdown(tried_report())

    assert text.count("- trials ran with gpu NVIDIA H100 80GB HBM3, torch 2.13.0\n") == 1
