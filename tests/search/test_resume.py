import os
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from autotune.cost.profile import Factors
from autotune.search.journal import open_storage, quiet_optuna
from autotune.search.loop import SearchResult, run_search
from autotune.search.stopping import Budget
from autotune.search.told import Fate
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.outcome import Failed, Status, TrialResult
from tests.search.toy import Machine, candidates, layouts, measured

TRUTH = Factors(compute_time=1.3, communication_time=2.0, memory=1.2)
SCATTER = (0.01, -0.01, 0.005)


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class _KilledError(BaseException):
    """Stands for SIGKILL: nothing of ours catches it, and nothing is written after it."""


class _DyingBackend(JournalFileBackend):
    """Dies in the middle of its n-th write, and is dead from then on."""

    def __init__(self, path: Path, *, dies_at: int) -> None:
        super().__init__(str(path))
        self._path = path
        self._left = dies_at

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        self._left -= 1
        if self._left > 0:
            super().append_logs(logs)
            return
        if self._left == 0:
            with self._path.open("ab") as file:
                file.write(b'{"op_code":8,"worker')
        raise _KilledError


class _Folders:
    """Runs trials and keeps their results, as trial folders do."""

    def __init__(self) -> None:
        self.machine = Machine(TRUTH, SCATTER)
        self.results: dict[str, TrialResult] = {}

    def run(self, number: int, layout: Layout) -> TrialResult:
        result = self.machine.run(number, layout)
        self.results[layout.key] = result
        return result


def _search(storage, run_trial, *, trials=5, **options) -> SearchResult:
    return run_search(
        candidates=candidates(),
        study_name="resumed",
        storage=storage,
        seed=0,
        budget=Budget(trials=trials),
        run_trial=run_trial,
        **options,
    )


def _writes(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def test_a_search_that_is_killed_in_any_of_its_writes_and_started_again_ends_as_if_it_had_not_been(tmp_path):
    undisturbed = _Folders()
    baseline = layouts()[0]
    expected = _search(open_storage(tmp_path / "whole.log"), undisturbed.run, trials=3, baseline=baseline)

    for dies_at in range(1, _writes(tmp_path / "whole.log") + 1):
        path = tmp_path / f"journal-{dies_at}.log"
        folders = _Folders()
        with pytest.raises(_KilledError), quiet_optuna():
            _search(JournalStorage(_DyingBackend(path, dies_at=dies_at)), folders.run, trials=3, baseline=baseline)

        result = _search(open_storage(path), folders.run, trials=3, baseline=baseline, finished=folders.results)

        assert folders.machine.ran == undisturbed.machine.ran  # each layout once, in the same order
        assert result.best is not None
        assert expected.best is not None
        assert result.best.layout == expected.best.layout
        assert result.stop == expected.stop
        assert result.factors.compute_time == pytest.approx(expected.factors.compute_time, rel=1e-6)


def test_a_finished_search_started_again_runs_nothing_and_answers_the_same(tmp_path):
    path = tmp_path / "journal.log"
    folders = _Folders()
    first = _search(open_storage(path), folders.run)
    ran = list(folders.machine.ran)

    second = _search(open_storage(path), folders.run)  # from the journal alone

    assert folders.machine.ran == ran
    assert second.tried == first.tried
    assert second.stop == first.stop


def test_a_larger_budget_goes_on_where_the_smaller_one_ended(tmp_path):
    path = tmp_path / "journal.log"
    folders = _Folders()
    _search(open_storage(path), folders.run, trials=2)

    _search(open_storage(path), folders.run, trials=4)

    assert len(folders.machine.ran) == len(set(folders.machine.ran)) == 4


@pytest.mark.parametrize("sampler", ["cost", "random"])
def test_after_ctrl_c_in_a_trial_that_layout_is_the_first_to_run_again(tmp_path, sampler):
    path = tmp_path / "journal.log"
    folders = _Folders()
    interrupted: list[Layout] = []

    def run_then_stop(number: int, layout: Layout) -> TrialResult:
        if len(folders.machine.ran) < 2:
            return folders.run(number, layout)
        interrupted.append(layout)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _search(open_storage(path), run_then_stop, sampler=sampler)
    result = _search(open_storage(path), folders.run, sampler=sampler, trials=4)

    assert folders.machine.ran[2] == interrupted[0].key
    assert len(set(folders.machine.ran)) == len(folders.machine.ran) == 4
    study = optuna.load_study(storage=open_storage(path), study_name=result.study_name)
    states = [trial.state for trial in study.get_trials() if "told" not in trial.user_attrs]
    assert states == [TrialState.FAIL]


def test_a_restarted_sampler_does_not_propose_again_what_it_proposed_before(tmp_path):
    path = tmp_path / "journal.log"
    folders = _Folders()
    first = _search(open_storage(path), folders.run, sampler="random", trials=2)

    second = _search(open_storage(path), folders.run, sampler="random", trials=3)

    before = [tried.layout for tried in first.tried]
    after = [tried.layout for tried in second.tried[len(before) :]]
    assert after[: len(before)] != before


def test_results_of_trial_folders_are_taken_over_without_a_journal(tmp_path):
    folders = _Folders()
    _search(open_storage(tmp_path / "lost.log"), folders.run, trials=3)
    ran = list(folders.machine.ran)

    result = _search(open_storage(tmp_path / "new.log"), folders.run, trials=4, finished=folders.results)

    assert folders.machine.ran[:3] == ran
    assert len(folders.machine.ran) == 4
    assert [tried.layout.key for tried in result.tried] == folders.machine.ran
    assert all(tried.result is not None for tried in result.tried)


def test_an_out_of_memory_of_an_earlier_start_still_rules_out_what_needs_as_much(tmp_path):
    path = tmp_path / "journal.log"
    dead = Layout(tp=2, dp_shard=4, zero_stage=1)
    folders = _Folders()
    _search(open_storage(path), folders.run, trials=1)
    assert folders.machine.ran == [dead.key]
    assert folders.results[dead.key] == Failed(status=Status.OOM, evidence="rank-0: tried to allocate 2.0 GiB")

    result = _search(open_storage(path), folders.run, trials=2)

    assert {layouts()[row].key for row in result.ruled_out.nonzero()[0]} >= {dead.key, "tp2-shard4-z1-mbs4"}


def test_a_result_of_a_layout_that_is_no_candidate_or_was_interrupted_is_not_taken_over(tmp_path):
    folders = _Folders()
    finished: dict[str, TrialResult] = {
        "tp64-mbs1": measured(1.0),
        "nonsense": measured(1.0),
        "tp2-shard4-z1-mbs1": Failed(status=Status.INTERRUPTED, evidence="Ctrl-C"),
    }

    result = _search(open_storage(tmp_path / "journal.log"), folders.run, trials=1, finished=finished)

    assert folders.machine.ran == ["tp2-shard4-z1-mbs1"]
    assert len(result.tried) == 1


def test_another_table_of_layouts_begins_another_study_in_the_same_journal(tmp_path):
    path = tmp_path / "journal.log"
    folders = _Folders()
    first = _search(open_storage(path), folders.run, trials=2)

    second = run_search(
        candidates=candidates(table=LayoutTable.of([*layouts(), Layout(tp=8)])),
        study_name="resumed",
        storage=open_storage(path),
        seed=0,
        budget=Budget(trials=2),
        run_trial=folders.run,
        finished=folders.results,
    )

    assert second.study_name != first.study_name
    assert len(folders.machine.ran) == 2
    assert [tried.told.fate for tried in second.tried] == [Fate.OUT_OF_MEMORY, Fate.MEASURED]
