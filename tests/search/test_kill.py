import json
import subprocess
import sys
import time
from pathlib import Path

import optuna
import pytest

from autotune.search.journal import open_storage
from tests.search.killable import TRIALS

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60


def _start(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.search.killable", str(folder)], cwd=ROOT)


def _lines(folder: Path, word: str) -> list[str]:
    log = folder / "runs.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.removeprefix(f"{word} ") for line in lines if line.startswith(f"{word} ")]


def _kill_after(folder: Path, word: str, count: int, wait_s: float) -> None:
    """Start the search, kill -9 it a moment after its log has so many lines that begin with the word."""
    process = _start(folder)
    deadline_s = time.monotonic() + PATIENCE_S
    while len(_lines(folder, word)) < count:
        assert process.poll() is None, "the search ended before it could be killed"
        assert time.monotonic() < deadline_s
        time.sleep(0.002)
    time.sleep(wait_s)
    process.kill()
    process.wait()


@pytest.mark.process
def test_a_search_killed_again_and_again_finishes_each_trial_once(tmp_path):
    # In the middle of the first trial, right after the end of the second, and late in the fourth.
    for word, count, wait_s in (("start", 1, 0.02), ("end", 2, 0.0), ("end", 3, 0.2)):
        finished_before = {path.stem for path in (tmp_path / "results").glob("*.json")}
        started_before = len(_lines(tmp_path, "start"))
        _kill_after(tmp_path, word, count, wait_s)
        assert not finished_before & set(_lines(tmp_path, "start")[started_before:])

    assert _start(tmp_path).wait(PATIENCE_S) == 0

    answer = json.loads((tmp_path / "answer.json").read_text())
    started = _lines(tmp_path, "start")
    results = sorted(path.stem for path in (tmp_path / "results").glob("*.json"))
    assert sorted(answer["ran"]) == results
    assert len(results) == TRIALS
    assert set(started) == set(results)
    assert TRIALS < len(started) <= TRIALS + 3  # at most the one that each kill cut short ran again
    trials = optuna.load_study(
        storage=open_storage(tmp_path / "journal.log"), study_name=answer["study"]
    ).get_trials()  # fmt: skip
    assert all(trial.state.is_finished() for trial in trials)
