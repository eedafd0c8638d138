"""Names of run and trial folders, and the atomic writer."""

import errno
import os

import pytest

from autotune.errors import EnvironmentFaultError
from autotune.trials.paths import RunFolder, is_temporary, run_folder_name, trial_number_and_key, write_atomically

INPUTS = {
    "model": {"name": "Llama 3/8B", "hidden_size": 4096},
    "cluster": {"name": "8x8xh100"},
    "workload": {"sequence_length": 8192, "global_batch_size": 256},
    "seed": 0,
}


def test_the_name_of_a_run_is_readable_and_ends_in_the_hash_of_its_inputs():
    name = run_folder_name(INPUTS)

    words, _, digest = name.rpartition("-")
    assert words == "llama-3-8b-8x8xh100-seq8192-gbs256"
    assert len(digest) == 8
    assert set(digest) <= set("0123456789abcdef")


def test_the_same_inputs_in_another_order_find_the_same_run_and_others_do_not():
    reordered = dict(reversed(INPUTS.items()))

    assert run_folder_name(reordered) == run_folder_name(INPUTS)
    assert run_folder_name({**INPUTS, "seed": 1}) != run_folder_name(INPUTS)


def test_inputs_without_names_still_have_a_folder():
    assert run_folder_name({"model": "../../etc/passwd"}).startswith("etc-passwd-")
    assert len(run_folder_name({})) == 8


def test_a_trial_folder_is_found_again_by_number_and_key(tmp_path):
    folder = RunFolder(root=tmp_path).trial_folder(7, "tp2-pp2-mbs1")

    assert folder == tmp_path / "trials" / "0007-tp2-pp2-mbs1"
    assert trial_number_and_key(folder) == (7, "tp2-pp2-mbs1")
    assert trial_number_and_key(RunFolder(root=tmp_path).trial_folder(12345, "mbs1")) == (12345, "mbs1")
    assert trial_number_and_key(tmp_path / "notes") is None


def test_a_write_replaces_the_whole_file_and_makes_missing_folders(tmp_path):
    path = tmp_path / "a" / "b.json"

    write_atomically(path, "long long ago")
    write_atomically(path, b"new \xc3\xbc")

    assert path.read_text(encoding="utf-8") == "new ü"
    assert [entry.name for entry in path.parent.iterdir()] == ["b.json"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_a_fault_of_the_environment_and_leaves_the_old_file(tmp_path, monkeypatch, number):
    path = tmp_path / "report.json"
    path.write_text("old")

    def full(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(EnvironmentFaultError) as caught:
        write_atomically(path, "four")

    assert str(caught.value) == f"{path}: no space left for 4 bytes; free some or give another --out"
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]


def test_a_file_in_the_way_of_a_folder_is_a_fault_of_the_environment(tmp_path):
    (tmp_path / "a").write_text("")

    with pytest.raises(EnvironmentFaultError, match="cannot be written"):
        write_atomically(tmp_path / "a" / "b.json", "text")


def test_a_write_that_is_killed_in_the_middle_leaves_a_file_that_is_known_as_ours(tmp_path, monkeypatch):
    def killed(*_):
        raise SystemExit

    monkeypatch.setattr("pathlib.Path.replace", killed)
    monkeypatch.setattr("pathlib.Path.unlink", killed)

    with pytest.raises(SystemExit):
        write_atomically(tmp_path / "report.json", "text")

    assert [is_temporary(path) for path in tmp_path.iterdir()] == [True]
    assert not is_temporary(tmp_path / ".notes.tmp")
