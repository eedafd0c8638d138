import json
import os
import time
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from autotune.cost.profile import Factors
from autotune.errors import EnvironmentFaultError, InputError
from autotune.search.journal import (
    open_storage,
    quiet_optuna,
    remove_stale_locks,
    repair_journal,
    sweep_running,
    writing_journal,
)
from autotune.search.loop import run_search
from autotune.search.stopping import Budget
from autotune.spec.layout import Layout, LayoutTable
from tests.search.toy import Machine, candidates


def _search(path: Path, *, trials: int) -> list[FrozenTrial]:
    """A real search on the journal at `path`: an out-of-memory, then a run that is measured."""
    # 40 GiB of weights over tp 2 and 6 GiB of activations fit by prediction: 1 + 20 + 6 of 30; 1.3 times that does not.
    table = LayoutTable.of([Layout(tp=4, dp_shard=2, zero_stage=1), Layout(tp=2, dp_shard=4, zero_stage=1)])
    result = run_search(
        candidates=candidates(table=table),
        study_name="torn",
        storage=open_storage(path),
        seed=0,
        budget=Budget(trials=trials),
        run_trial=Machine(Factors(memory=1.3)).run,
    )
    return optuna.load_study(storage=open_storage(path), study_name=result.study_name).get_trials()


def _journal(path: Path, *, trials: int = 1) -> bytes:
    _search(path, trials=trials)
    return path.read_bytes()


@pytest.fixture
def no_fsync(monkeypatch):
    """Thousands of flushes to the disk would take most of the time, and no test can see one."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def test_a_journal_cut_at_any_byte_is_cut_to_its_whole_lines_and_opens(tmp_path, no_fsync):
    whole = _journal(tmp_path / "whole.log")
    path = tmp_path / "journal.log"
    opened = set()

    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        lines = whole[: whole.rfind(b"\n", 0, cut) + 1]

        assert repair_journal(path) == cut - len(lines)

        assert path.read_bytes() == lines
        if lines not in opened:  # one file opens as often as it is asked
            open_storage(path)
            opened.add(lines)
    assert len(opened) == whole.count(b"\n") + 1


def test_optuna_itself_does_not_survive_a_torn_journal_which_is_why_we_repair_it(tmp_path):
    path = tmp_path / "journal.log"
    whole = _journal(path)
    path.write_bytes(whole[:-5])

    with pytest.raises((ValueError, AssertionError)):
        _begin_a_study(JournalStorage(JournalFileBackend(str(path))))

    path.write_bytes(whole[:-5])
    _begin_a_study(open_storage(path))


def _begin_a_study(storage: JournalStorage) -> None:
    with quiet_optuna():
        optuna.create_study(storage=storage, study_name="another").get_trials()


def test_a_search_goes_on_from_a_journal_cut_after_or_within_any_of_its_lines(tmp_path, no_fsync):
    whole = _journal(tmp_path / "whole.log", trials=2)
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    path = tmp_path / "journal.log"

    for cut in (0, *(end - line % 2 for line, end in enumerate(ends))):
        path.write_bytes(whole[:cut])
        trials = _search(path, trials=2)
        fates = sorted(trial.user_attrs["told"]["fate"] for trial in trials if trial.state is TrialState.COMPLETE)
        assert fates == ["measured", "out-of-memory"]
        assert all(trial.state.is_finished() for trial in trials)


@pytest.mark.parametrize(
    "garbage",
    [
        b"garbage\n",
        b"\0\0\0\0\n",
        b"\xff\xfe\n",
        b"{}\n",
        b"[1]\n",
        b"null\n",
        b"\n",
        b'{"op_code": 4',
        b"[" * 9999 + b"\n",
    ],
)
def test_a_garbage_last_line_is_cut_off(tmp_path, garbage):
    path = tmp_path / "journal.log"
    whole = _journal(path)
    path.write_bytes(whole + garbage)

    assert repair_journal(path) == len(garbage)

    assert path.read_bytes() == whole


def test_a_whole_journal_is_left_as_it_is(tmp_path):
    path = tmp_path / "journal.log"
    _journal(path)
    before = path.stat()

    assert repair_journal(path) == 0

    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_whole_lines_that_no_study_can_be_made_of_are_refused_with_the_way_out(tmp_path):
    path = tmp_path / "journal.log"
    line = json.dumps({"op_code": 0, "worker_id": "w"})
    path.write_text(line + "\n")

    with pytest.raises(InputError, match=r"journal\.log: is not a journal of Optuna .*--fresh"):
        open_storage(path)


def test_a_journal_in_the_way_of_a_folder_is_an_environment_fault(tmp_path):
    (tmp_path / "journal.log").mkdir()

    with pytest.raises(EnvironmentFaultError, match="give another --out"):
        open_storage(tmp_path / "journal.log")


def _link_to_the_journal(path: Path, lock: Path) -> None:
    lock.symlink_to(path)


def _dangling_link(path: Path, lock: Path) -> None:
    lock.symlink_to("nowhere")


def _empty_file(path: Path, lock: Path) -> None:
    lock.touch()


@pytest.mark.parametrize("leave_lock", [_link_to_the_journal, _dangling_link, _empty_file])
def test_a_lock_that_a_killed_process_left_costs_no_time(tmp_path, leave_lock):
    path = tmp_path / "journal.log"
    path.touch()
    leave_lock(path, tmp_path / "journal.log.lock")
    (tmp_path / "journal.log.lock0b6cfe7e.rename").touch()
    (tmp_path / "journal.log.notes").touch()
    started_s = time.monotonic()

    optuna.create_study(storage=open_storage(path), study_name="locked")

    assert time.monotonic() - started_s < 5  # Optuna would wait for 30 s
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["journal.log", "journal.log.notes"]


def test_the_journal_itself_survives_the_removal_of_a_link_to_it(tmp_path):
    path = tmp_path / "journal.log"
    path.write_text("kept")
    (tmp_path / "journal.log.lock").symlink_to(path)

    remove_stale_locks(path)

    assert path.read_text() == "kept"


def test_trials_that_nobody_runs_are_told_to_have_failed(tmp_path):
    study = optuna.create_study(storage=open_storage(tmp_path / "journal.log"))
    study.ask()
    finished = study.ask()
    study.tell(finished, 1.0)
    study.ask()

    swept = sweep_running(study)

    assert [trial.number for trial in swept] == [0, 2]
    assert [trial.state for trial in study.get_trials()] == [TrialState.FAIL, TrialState.COMPLETE, TrialState.FAIL]


def test_a_journal_that_cannot_be_written_is_a_fault_of_the_environment():
    full = OSError(28, os.strerror(28), "run/journal.log")

    with (
        pytest.raises(EnvironmentFaultError, match=r"run/journal\.log: cannot be written \(No space left"),
        writing_journal(),
    ):
        raise full


def test_optuna_says_nothing_on_stderr_and_its_verbosity_is_given_back(tmp_path, capfd):
    before = optuna.logging.get_verbosity()

    _journal(tmp_path / "journal.log")

    assert capfd.readouterr() == ("", "")
    assert optuna.logging.get_verbosity() == before
