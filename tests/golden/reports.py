"""Reports that are held fast as text, and how to write them anew: `python -m tests.golden.reports`."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

from rich.console import Console

from autotune.report.as_json import check_json, report_json
from autotune.report.describe import describe, describe_invalid
from autotune.report.markdown import report_markdown
from autotune.report.ranked import RankedLayout, Report
from autotune.report.terminal import print_check, print_report
from autotune.space.rules import Reason
from autotune.spec.axes import AXIS_NAMES
from autotune.spec.layout import Layout
from autotune.spec.verdict import Origin
from tests.report.reports import KEYS, example_table, question_of_512, report_of, scored_table, tried_report

DATA = Path(__file__).parent / "data" / "reports"


def plain_console(width: int) -> Console:
    """A console that writes plain text of a fixed width into memory."""
    return Console(
        file=StringIO(), width=width, color_system=None, force_terminal=False, markup=False, highlight=False,
        emoji=False, legacy_windows=False,
    )  # fmt: skip


def printed(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def tune_text(report: Report, width: int) -> str:
    console = plain_console(width)
    print_report(report, console)
    return printed(console)


def check_text(ranked: RankedLayout, width: int, *, warnings: tuple[str, ...] = (), notes: tuple[str, ...] = ()) -> str:
    console = plain_console(width)
    print_check(ranked, question_of_512(), "megatron-lm", warnings=warnings, notes=notes, console=console)
    return printed(console)


def nothing_fits() -> Report:
    """One legal layout, 11 GiB over the limit."""
    return report_of(scored_table([Layout.from_key(KEYS[4])], [8.0], [90 * 2**30]), run=None)


def checked(key: str) -> RankedLayout:
    """A layout of the example, all axes given."""
    scored = example_table(interval=(0.9, 1.125))
    return describe(scored, KEYS.index(key), dict.fromkeys(AXIS_NAMES, Origin.GIVEN))


def invalid() -> RankedLayout:
    """Two broken rules."""
    return describe_invalid(
        Layout(tp=3, pp=2),
        dict.fromkeys(AXIS_NAMES, Origin.GIVEN),
        (
            Reason(code="heads-divide-tp", axes=("tp",), message="tp=3 does not divide num_attention_heads=32"),
            Reason(code="gpus", axes=("tp", "pp"), message="tp·pp = 6 does not divide the 512 GPUs; take tp=2 or tp=4"),
        ),
        limit_bytes=79.0 * 2**30,
    )


def _json(document: object) -> str:
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


RENDERINGS: dict[str, Callable[[], str]] = {
    "tune-80.txt": lambda: tune_text(tried_report(), 80),
    "tune-100.txt": lambda: tune_text(tried_report(), 100),
    "tune-140.txt": lambda: tune_text(tried_report(), 140),
    "tune-without-trials-100.txt": lambda: tune_text(report_of(example_table()), 100),
    "tune-nothing-fits-80.txt": lambda: tune_text(nothing_fits(), 80),
    "check-fits-80.txt": lambda: check_text(checked(KEYS[0]), 80),
    "check-borderline-80.txt": lambda: check_text(checked(KEYS[1]), 80),
    "check-does-not-fit-80.txt": lambda: check_text(checked(KEYS[4]), 80, warnings=("the layout leaves 8 GPUs idle",)),
    "check-invalid-80.txt": lambda: check_text(
        invalid(), 80, notes=("nearest legal layouts: tp2-pp2-mbs1, tp4-pp2-mbs1",)
    ),
    "report.md": lambda: report_markdown(tried_report()),
    "report-nothing-fits.md": lambda: report_markdown(nothing_fits()),
    "report.json": lambda: _json(report_json(tried_report())),
    "check.json": lambda: _json(
        check_json(checked(KEYS[1]), parameters=8_030_261_248, active_parameters=8_030_261_248, tool_version="0.1.0")
    ),
    "check-invalid.json": lambda: _json(
        check_json(invalid(), parameters=8_030_261_248, active_parameters=8_030_261_248, tool_version="0.1.0")
    ),
}


def write_all() -> None:
    """Write every rendering as today's code makes it."""
    DATA.mkdir(parents=True, exist_ok=True)
    for name, render in RENDERINGS.items():
        (DATA / name).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    write_all()
