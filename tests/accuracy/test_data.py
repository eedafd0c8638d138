import csv

import pytest

from autotune.accuracy.data import RUNS, read_assumptions, shipped_assumptions, shipped_files
from autotune.errors import InputError
from autotune.spec.measured_row import COLUMNS


def test_every_shipped_run_names_its_source():
    for path in shipped_files():
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert {row["source"] for row in rows} == {path.stem}
        assert all(row.get("source_ref") or row["notes"] for row in rows), path


def test_shipped_columns_are_those_that_are_read():
    for path in shipped_files():
        with path.open(newline="", encoding="utf-8") as file:
            assert set(csv.DictReader(file).fieldnames or ()) <= set(COLUMNS), path


def test_every_assumption_is_about_a_shipped_source_and_has_a_reason():
    assert set(shipped_assumptions()) <= {path.stem for path in shipped_files()}
    assert all(cell.reason for cells in shipped_assumptions().values() for cell in cells.values())


def test_an_assumption_about_no_column_is_a_fault(tmp_path):
    path = tmp_path / "assumed.yaml"
    path.write_text("somebody:\n  vocabulary: {value: '1', reason: guess}\n  vocab: {value: '1'}\n")

    with pytest.raises(InputError) as caught:
        read_assumptions(path)

    assert [fault.key for fault in caught.value.faults] == ["somebody.vocabulary", "somebody.vocab.reason"]


def test_nothing_but_runs_and_assumptions_ships():
    assert {path.suffix for path in RUNS.iterdir() if path.is_file()} == {".csv", ".yaml", ".py"}
