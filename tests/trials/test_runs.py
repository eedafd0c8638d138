"""Opening a run folder: new, again, with other inputs, afresh, or somebody else's; and the trials it holds."""

import json

import pytest

from autotune.errors import EnvironmentFaultError, InputError
from autotune.spec.outcome import Failed, Status
from autotune.trials.lock import RunLock
from autotune.trials.outcome import write_finished
from autotune.trials.paths import RunFolder
from autotune.trials.runs import hold_run, open_run, read_trials

INPUTS = {"model": {"name": "tiny", "layers": 2}, "axes": {"tp": [1, 2]}, "seed": 0}


def fault_lines(error):
    return [(fault.key, fault.message) for fault in error.value.faults]


def test_a_new_run_keeps_its_inputs(tmp_path):
    run = open_run(tmp_path / "run", INPUTS, fresh=False)

    assert run == RunFolder(root=tmp_path / "run")
    assert json.loads(run.inputs.read_text()) == {"schema_version": 1, "inputs": INPUTS}


def test_the_same_inputs_open_the_same_run(tmp_path):
    run = open_run(tmp_path, INPUTS, fresh=False)
    run.table.write_text("scored")

    again = open_run(tmp_path, {**INPUTS, "axes": {"tp": (1, 2)}}, fresh=False)  # a tuple is a list in a file

    assert again == run
    assert run.table.read_text() == "scored"


def test_changed_inputs_are_refused_with_every_key_and_both_values(tmp_path):
    open_run(tmp_path, INPUTS, fresh=False)
    changed = {"model": {"name": "tiny", "layers": 4}, "axes": {"tp": [1, 2, 4]}, "engine": "torch", "seed": False}

    with pytest.raises(InputError) as caught:
        open_run(tmp_path, changed, fresh=False)

    assert caught.value.exit_code == 2
    assert fault_lines(caught) == [
        ("axes.tp", "was [1, 2] when the run began and is [1, 2, 4] now"),
        ("engine", 'was absent when the run began and is "torch" now'),
        ("model.layers", "was 2 when the run began and is 4 now"),
        ("seed", "was 0 when the run began and is false now"),
        ("", "the run was begun with other inputs; start it over with --fresh, or give another --out"),
    ]


def test_a_key_that_is_gone_is_a_change(tmp_path):
    open_run(tmp_path, INPUTS, fresh=False)

    with pytest.raises(InputError) as caught:
        open_run(tmp_path, {key: value for key, value in INPUTS.items() if key != "seed"}, fresh=False)

    assert fault_lines(caught)[0] == ("seed", "was 0 when the run began and is absent now")


@pytest.mark.parametrize("content", [b"", b'{"schema_version": 1', b"\xff", b"[]", b'{"inputs": {}}'])
@pytest.mark.parametrize("fresh", [False, True])
def test_inputs_that_nobody_can_read_are_never_overwritten(tmp_path, content, fresh):
    (tmp_path / "inputs.json").write_bytes(content)

    with pytest.raises(InputError) as caught:
        open_run(tmp_path, INPUTS, fresh=fresh)

    assert str(tmp_path / "inputs.json") in str(caught.value)
    assert (tmp_path / "inputs.json").read_bytes() == content


@pytest.mark.parametrize("fresh", [False, True])
def test_a_folder_of_somebody_else_is_refused_untouched(tmp_path, fresh):
    (tmp_path / "thesis.tex").write_text("years of work")

    with (
        pytest.raises(InputError, match=r"not the folder of a run; give another --out"),
        hold_run(tmp_path, INPUTS, fresh=fresh),
    ):
        pass

    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_out_that_is_a_file_is_malformed_input(tmp_path):
    (tmp_path / "run").write_text("")

    for root in (tmp_path / "run", tmp_path / "run" / "inner"):
        with pytest.raises(InputError, match="under a file"), hold_run(root, INPUTS, fresh=False):
            pass


def test_fresh_deletes_what_we_made_and_nothing_else(tmp_path):
    run = open_run(tmp_path, INPUTS, fresh=False)
    trial = run.trial_folder(0, "tp2-mbs1")
    for path in (run.table, run.journal, run.report_md, run.report_json, run.launch / "run.sh",
                 run.launch / "a" / "env", trial / "trial.json", run.root / ".report.md.12-0123abcd.tmp"):  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("ours")
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "precious").write_text("")
    (run.trials / "0001-mbs1").symlink_to(outside)
    (run.trials / "notes.txt").write_text("theirs")
    (run.root / "notes.txt").write_text("theirs")

    open_run(tmp_path, {**INPUTS, "seed": 1}, fresh=True)

    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert left == ["inputs.json", "notes.txt", "trials", "trials/0001-mbs1", "trials/notes.txt"]
    assert (outside / "precious").exists()
    assert json.loads(run.inputs.read_text())["inputs"]["seed"] == 1


def test_a_held_run_is_locked_until_the_end(tmp_path):
    with hold_run(tmp_path, INPUTS, fresh=False) as run:
        assert run.lock.exists()
        with pytest.raises(EnvironmentFaultError), RunLock(run.lock):
            pass
        with pytest.raises(EnvironmentFaultError), hold_run(tmp_path, INPUTS, fresh=True):
            pass
    assert not run.lock.exists()


def test_the_finished_trials_are_read_by_number_and_the_others_left_out(tmp_path):
    run = open_run(tmp_path, INPUTS, fresh=False)
    failed = Failed(status=Status.OOM, evidence="rank-0: tried to allocate 2.0 GiB")
    for number, key in ((10, "tp2-mbs1"), (2, "pp2-mbs1")):
        write_finished(run.trial_folder(number, key), failed)
    run.trial_folder(3, "mbs1").mkdir()  # half-finished
    write_finished(run.trials / "notes", failed)

    got = read_trials(run)

    assert [(trial.number, trial.key) for trial in got] == [(2, "pp2-mbs1"), (10, "tp2-mbs1")]
    assert {trial.result for trial in got} == {failed}
    assert got[0].folder == run.trial_folder(2, "pp2-mbs1")


def test_a_run_without_trials_has_finished_none(tmp_path):
    assert read_trials(RunFolder(root=tmp_path / "nowhere")) == ()
