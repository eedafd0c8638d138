"""`autotune schedule`."""

import json

import pytest
import typer
from typer.testing import CliRunner, Result

from autotune.cli.schedule import schedule


def run(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(schedule)
    return CliRunner(env={"NO_COLOR": "1"}).invoke(app, list(arguments))


def test_the_drawing_the_numbers_and_the_bubbles_go_to_stdout() -> None:
    done = run("1f1b", "--pp", "2", "--micro-batches", "2")

    lines = done.stdout.splitlines()
    assert done.exit_code == 0
    assert "rank 0 F0 F1 ......B0    ...B1    " in lines
    assert "bubble share   33.3 %" in lines
    assert "peak memory    rank 0  2.00" in lines
    assert lines[-1].split() == ["1", "7.00", "2.00", "2.00"]


def test_a_schedule_that_no_engine_runs_is_marked_not_launchable() -> None:
    assert run("hanayo", "--pp", "2", "--micro-batches", "2").stdout.startswith("hanayo (not launchable")
    assert run("gpipe", "--pp", "2", "--micro-batches", "2").stdout.startswith("gpipe (run by torch")


def test_files_are_written_and_named_on_stderr(tmp_path) -> None:
    files = {flag: tmp_path / name for flag, name in (("--png", "a.png"), ("--svg", "a.svg"), ("--trace", "a.json"))}
    done = run(
        "zb-v",
        "--pp",
        "2",
        "--micro-batches",
        "4",
        *(word for flag, path in files.items() for word in (flag, str(path))),
    )

    assert done.exit_code == 0
    for path in files.values():
        assert path.stat().st_size > 0
        assert f"wrote {path}" in done.stderr


def test_json_is_one_document_on_stdout() -> None:
    done = run("interleaved", "--pp", "2", "--micro-batches", "4", "--vpp", "2", "--backward-ratio", "2", "--json")

    # 4·3 + (p - 1)·3/v
    assert json.loads(done.stdout)["step_time"] == pytest.approx(13.5)


def test_every_fault_of_the_input_is_a_sentence_on_stderr_and_exit_code_2() -> None:
    done = run("dualpipe", "--pp", "3", "--micro-batches", "5")

    assert done.exit_code == 2
    assert done.stdout == ""
    assert "pp=3 is odd" in done.stderr
    assert "5 micro-batches are odd" in done.stderr
