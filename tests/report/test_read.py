import json
from pathlib import Path
from typing import Any

import pytest

from autotune.errors import InputError
from autotune.report.as_json import report_json
from autotune.report.read import read_report
from tests.report.reports import KEYS, tried_report


def written(tmp_path: Path, change: Any = None) -> Path:
    """A report.json, changed before it is written."""
    data = json.loads(json.dumps(report_json(tried_report())))
    if change is not None:
        change(data)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def faults(path: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_report(path, {})
    return [str(fault) for fault in caught.value.faults]


def test_without_the_trial_folders_the_measured_numbers_are_still_there(tmp_path: Path) -> None:
    report = read_report(written(tmp_path), {})

    assert report.ran == ()
    assert report.winner is not None
    assert (report.winner.key, report.winner.measured_s) == (KEYS[2], 10.25)


def test_a_report_that_is_not_there_is_one_clear_sentence(tmp_path: Path) -> None:
    (sentence,) = faults(tmp_path / "report.json")

    assert "report.json: does not exist" in sentence


@pytest.mark.parametrize("length", [0, 1, 100, 5000])
def test_a_cut_off_report_is_an_input_error(tmp_path: Path, length: int) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:length])

    (sentence,) = faults(path)

    assert "is not JSON" in sentence


def test_a_folder_is_not_a_report(tmp_path: Path) -> None:
    (sentence,) = faults(tmp_path)

    assert "cannot be read" in sentence


def test_deep_nesting_is_an_input_error(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("[" * 200_000, encoding="utf-8")

    (sentence,) = faults(path)

    assert "is not JSON" in sentence


@pytest.mark.parametrize("document", ["[]", "3", "{}", '{"schema_version": 2}', '{"schema_version": "1"}'])
def test_another_schema_is_named_with_the_way_out(tmp_path: Path, document: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(document, encoding="utf-8")

    (sentence,) = faults(path)

    assert "schema_version" in sentence
    assert "give the folder of a run" in sentence


def test_all_faults_are_reported_with_their_keys(tmp_path: Path) -> None:
    def change(data: Any) -> None:
        data["layouts"][0]["place"] = "first"
        del data["space"]["valid"]
        data["details"]["elapsed_s"] = None

    told = " ".join(faults(written(tmp_path, change)))

    for key in ("layouts.0.place", "space.valid", "details.elapsed_s"):
        assert key in told


def test_an_unknown_key_is_a_fault(tmp_path: Path) -> None:
    def change(data: Any) -> None:
        data["layouts"][0]["verdcit"] = "fits"

    (sentence,) = faults(written(tmp_path, change))

    assert "layouts.0.verdcit" in sentence
    assert "did you mean 'verdict'?" in sentence


def test_a_layout_that_is_not_that_of_its_key_is_a_fault(tmp_path: Path) -> None:
    def change(data: Any) -> None:
        data["layouts"][1]["layout"]["tp"]["value"] = 7

    (sentence,) = faults(written(tmp_path, change))

    assert f"layouts.1: is not the layout of its key {KEYS[0]}" in sentence


def test_a_key_that_names_no_layout_is_a_fault(tmp_path: Path) -> None:
    def change(data: Any) -> None:
        data["layouts"][1]["key"] = "../../etc"

    told = faults(written(tmp_path, change))

    assert any("layouts.1: is not the layout of its key ../../etc" in sentence for sentence in told)


def test_a_winner_that_is_not_listed_is_a_fault(tmp_path: Path) -> None:
    def change(data: Any) -> None:
        data["winner"]["key"] = "tp2-mbs1"
        data["details"]["nearest_miss"] = "tp4-mbs1"

    told = " ".join(faults(written(tmp_path, change)))

    assert "winner: tp2-mbs1 is not among the layouts" in told
    assert "details.nearest_miss: tp4-mbs1 is not among the layouts" in told
