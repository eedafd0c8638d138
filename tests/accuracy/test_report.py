import csv
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from autotune.accuracy.as_json import accuracy_json
from autotune.accuracy.data import shipped_files
from autotune.accuracy.markdown import accuracy_markdown
from autotune.accuracy.plots import accuracy_plots
from autotune.accuracy.report import AccuracyReport
from autotune.cli.accuracy import accuracy as command
from autotune.errors import InputError
from autotune.workflow.accuracy import AccuracyRequest, accuracy, write_accuracy_files
from tests.accuracy.runs import csv_of

KEYS = [
    "rows", "step_time_mape", "step_time_bias", "spearman_mean", "regret_mean", "regret_worst", "memory_mape", "oom_f1",
    "oom_false_fits", "skipped",
]  # fmt: skip

MIXED = (
    {},
    {"tp": "4", "dp": "2", "peak_memory_gib": "40", "memory_kind": "torch max allocated"},
    {"tp": "1", "dp": "8", "seq_parallel": "0", "oom": "1", "step_time_s": "", "micro_batch": "8"},
    {"suspect": "1"},
    {"recompute": ""},
    {"micro_batch": "3"},
    {"step_time_s": "", "oom": "", "run_id": "nothing"},
)


@pytest.fixture
def report(tmp_path) -> AccuracyReport:
    return accuracy(AccuracyRequest(files=(csv_of(tmp_path, *MIXED),)))


@pytest.fixture(scope="module")
def shipped() -> AccuracyReport:
    return accuracy(AccuracyRequest())


def run_command(*arguments: str):
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, list(arguments))


def test_every_row_is_scored_or_listed_with_a_reason(report):
    assert [row.run.run_id for row in report.rows] == ["run-0", "run-1", "run-2"]
    assert {run.run_id: run.reason for run in report.skipped} == {
        "run-3": "the file marks it as suspect",
        "run-4": "recompute is not stated",
        "run-5": next(run.reason for run in report.skipped if run.run_id == "run-5"),
        "nothing": "neither a step time, a peak nor an out-of-memory label can be scored",
    }
    assert "is not a multiple of" in next(run.reason for run in report.skipped if run.run_id == "run-5")


def test_the_json_has_the_same_figures_of_all_and_of_each_source(report):
    document = accuracy_json(report.summary)

    assert list(document) == ["all", "sources"]
    assert list(document["all"]) == KEYS
    assert [list(figures) for figures in document["sources"].values()] == [KEYS]
    assert (document["all"]["rows"], document["all"]["skipped"]) == (3, 4)
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_the_markdown_holds_every_run_that_was_skipped(report):
    text = accuracy_markdown(report)

    for run in report.skipped:
        assert run.run_id in text
        assert run.reason.replace("|", "&#124;") in text


def test_the_markdown_names_the_part_that_is_likely_wrong(report):
    text = accuracy_markdown(report)

    assert "## Worst step times" in text
    assert report.worst_times[0].part.replace("_", " ") in text


def test_a_vertical_bar_in_a_file_does_not_break_the_tables(tmp_path):
    report = accuracy(AccuracyRequest(files=(csv_of(tmp_path, {"source": "a|b"}),)))

    lines = [line for line in accuracy_markdown(report).splitlines() if "a&#124;b" in line]
    assert lines
    assert all("a|b" not in line for line in lines)


def test_plots_are_pictures_and_the_same_for_the_same_report(report):
    plots = accuracy_plots(report)

    assert set(plots) == {"step-time.png", "peak-memory.png", "time-error-by-axis.png"}  # one peak varies on no axis
    assert all(content.startswith(b"\x89PNG") for content in plots.values())
    assert accuracy_plots(report) == plots


def test_written_files_are_linked_from_the_markdown(report, tmp_path):
    written = write_accuracy_files(report, markdown=tmp_path / "out" / "report.md", plots=tmp_path / "out" / "plots")

    assert all(path.is_file() for path in written)
    assert "![plots/step-time.png](plots/step-time.png)" in (tmp_path / "out" / "report.md").read_text()


def test_faults_of_all_files_are_reported_at_once(tmp_path):
    bad, worse = csv_of(tmp_path, {"tp": "x"}, name="bad.csv"), tmp_path / "none.csv"

    with pytest.raises(InputError) as caught:
        accuracy(AccuracyRequest(files=(bad, worse)))

    assert [Path(fault.where).name for fault in caught.value.faults] == ["bad.csv", "none.csv"]


def test_a_run_in_two_files_would_count_twice_and_is_refused(tmp_path):
    one, other = csv_of(tmp_path, {}, name="one.csv"), csv_of(tmp_path, {}, name="other.csv")

    with pytest.raises(InputError) as caught:
        accuracy(AccuracyRequest(files=(one, other)))

    assert [fault.where for fault in caught.value.faults] == ["run-0"]


def test_a_file_without_runs_scores_nothing_and_does_not_fail(tmp_path):
    report = accuracy(AccuracyRequest(files=(csv_of(tmp_path),)))

    assert accuracy_json(report.summary)["all"] == {**dict.fromkeys(KEYS), "rows": 0, "skipped": 0}
    assert "0 runs of 1 files scored" in accuracy_markdown(report)
    assert accuracy_plots(report) == {}


def test_calibration_scores_only_what_it_was_not_fitted_to(tmp_path):
    layouts = [
        {"tp": tp, "dp": str(8 // int(tp)), "micro_batch": micro} for tp in ("1", "2", "4") for micro in ("1", "2")
    ]
    path = csv_of(tmp_path, *layouts)

    report = accuracy(AccuracyRequest(files=(path,), calibrate=2))

    assert (len(report.rows), len(report.taken)) == (4, 2)
    assert "these 2 runs are not scored" in accuracy_markdown(report)


def test_the_command_prints_plain_json_alone_on_stdout(tmp_path):
    result = run_command(str(csv_of(tmp_path, *MIXED)), "--json")

    assert result.exit_code == 0
    assert json.loads(result.stdout)["all"]["rows"] == 3


def test_the_command_prints_a_table_and_the_reasons(tmp_path):
    result = run_command(str(csv_of(tmp_path, *MIXED)))

    assert result.exit_code == 0
    assert "somebody" in result.stdout
    assert "worst step times" in result.stdout


def test_the_command_ends_with_2_for_a_malformed_file(tmp_path):
    result = run_command(str(csv_of(tmp_path, {"tp": "x"})))

    assert result.exit_code == 2
    assert "is not a number" in result.stderr


def test_the_command_writes_the_report_and_says_where(tmp_path):
    result = run_command(str(csv_of(tmp_path, *MIXED)), "-o", str(tmp_path / "report.md"), "--json")

    assert result.exit_code == 0
    assert (tmp_path / "report.md").read_text().startswith("# How well the cost model predicts")
    assert "report.md" in result.stderr


def test_a_bare_command_scores_the_runs_that_ship(shipped):
    assert shipped.files == shipped_files()
    assert set(shipped.summary.sources) == {path.stem for path in shipped_files()}


def test_nine_of_ten_shipped_runs_that_say_what_they_ran_are_scored(shipped):
    assert shipped.summary.all.coverage is not None
    assert shipped.summary.all.coverage >= 0.90


def test_no_shipped_row_is_lost(shipped):
    in_files = {
        path.stem: len(list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))) for path in shipped_files()
    }

    assert {name: figures.rows + figures.skipped for name, figures in shipped.summary.sources.items()} == in_files


def test_suspect_runs_are_in_no_figure(shipped):
    assert not any(row.run.suspect for row in shipped.rows)
    assert sum(run.reason == "the file marks it as suspect" for run in shipped.skipped) >= 31


def test_scoring_does_not_depend_on_the_order_of_the_rows(tmp_path):
    forward = accuracy(AccuracyRequest(files=(csv_of(tmp_path, *MIXED),)))
    ids = [{**change, "run_id": change.get("run_id", f"run-{place}")} for place, change in enumerate(MIXED)]
    backward = accuracy(AccuracyRequest(files=(csv_of(tmp_path, *reversed(ids)),)))

    assert accuracy_json(forward.summary)["all"] == pytest.approx(accuracy_json(backward.summary)["all"])
    assert {row.run.run_id: row.step_time_s for row in forward.rows} == pytest.approx(
        {row.run.run_id: row.step_time_s for row in backward.rows}
    )


def test_assumptions_of_a_source_do_not_reach_another_file(tmp_path):
    report = accuracy(
        AccuracyRequest(files=(csv_of(tmp_path, {"recompute": "", "source": "vocab_parallelism_of_mine"}),))
    )

    assert [run.reason for run in report.skipped] == ["recompute is not stated"]
