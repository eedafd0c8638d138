import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.report.as_json import check_json, report_json, tune_json
from autotune.report.describe import describe, describe_invalid
from autotune.report.read import read_report
from autotune.space.rules import Reason
from autotune.spec.axes import AXES, AXIS_NAMES
from autotune.spec.figure import Basis
from autotune.spec.layout import Layout
from autotune.spec.load import JsonObject
from autotune.spec.verdict import Origin, Verdict
from tests.report.reports import KEYS, example_table, report_of, tried_report

DOCUMENTED = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
GIVEN = dict.fromkeys(AXIS_NAMES, Origin.GIVEN)


def documented(name: str) -> JsonObject:
    """The example of `docs/files.md` that is marked with this name."""
    (text,) = re.findall(rf"```json {name}\n(.*?)```", DOCUMENTED, re.DOTALL)
    example: JsonObject = json.loads(text)
    return example


def checked(row: int = 1) -> JsonObject:
    ranked = describe(example_table(), row, GIVEN)
    return check_json(ranked, parameters=70, active_parameters=7, tool_version="0.1.0")


def keys(data: object) -> object:
    """The data with its lists and mappings, but without what stands in them."""
    if isinstance(data, dict):
        return {name: keys(value) for name, value in data.items()}
    if isinstance(data, list):
        return [keys(value) for value in data]
    return None


def test_check_has_the_documented_keys_and_no_others() -> None:
    assert keys(checked()) == keys(documented("check"))
    assert list(checked()) == list(documented("check"))


def test_tune_has_the_documented_keys_and_no_others() -> None:
    got, example = tune_json(tried_report()), documented("tune")
    a_layout = set(documented("check")) - {"schema_version", "tool_version", "model"} | {"place"}

    assert list(got) == list(example)
    assert set(got["space"]) == set(example["space"])
    for layout in (*got["layouts"], got["winner"]):
        assert set(layout) == a_layout
        assert next(iter(layout)) == "place"


def test_the_documented_example_is_true_to_itself() -> None:
    example = documented("check")
    layout = Layout(**{name: axis["value"] for name, axis in example["layout"].items()})

    assert layout.key == example["key"]
    assert sum(example["memory"].values()) == example["peak_memory_bytes"]["predicted"]
    assert sum(example["time"].values()) == example["step_time_s"]["predicted"]


def test_the_document_lists_every_axis_verdict_basis_and_origin() -> None:
    rows = {tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in DOCUMENTED.splitlines() if "|" in line}
    first = {row[0].strip("`") for row in rows if row}

    assert {str(word) for word in (*Verdict, *Basis, *Origin)} <= first
    off = {row[0].strip("`"): row[2].strip("`") for row in rows if len(row) == 4}
    assert {axis.name: off[axis.name] for axis in AXES} == {axis.name: json.dumps(axis.off).strip('"') for axis in AXES}


def test_every_axis_has_its_value_and_where_it_came_from() -> None:
    got = checked()["layout"]

    assert tuple(got) == AXIS_NAMES
    assert got["schedule"] == {"value": "interleaved", "origin": "given"}
    assert got["sequence_parallel"] == {"value": True, "origin": "given"}
    assert got["tp"] == {"value": 8, "origin": "given"}


def test_the_parts_add_up_to_the_totals() -> None:
    for layout in tune_json(tried_report())["layouts"]:
        assert sum(layout["memory"].values()) == pytest.approx(layout["peak_memory_bytes"]["predicted"])
        assert sum(layout["time"].values()) == pytest.approx(layout["step_time_s"]["predicted"])


def test_what_is_unknown_is_null() -> None:
    reason = Reason(code="heads-divide-tp", axes=("tp",), message="tp=3 does not divide num_attention_heads=32")
    ranked = describe_invalid(Layout(tp=3), GIVEN, (reason,), limit_bytes=79.0)

    got = check_json(ranked, parameters=70, active_parameters=7, tool_version="0.1.0")

    assert got["step_time_s"] == {"predicted": None, "low": None, "high": None, "measured": None}
    assert got["peak_memory_bytes"] == {"predicted": None, "upper": None, "measured": None, "limit": 79.0}
    assert (got["memory"], got["time"], got["oom_probability"], got["basis"]) == (None, None, None, None)
    assert got["verdict"] == "invalid"
    assert got["reasons"] == [{"code": reason.code, "axes": ["tp"], "message": reason.message}]


def test_no_number_is_infinite_or_nan() -> None:
    ranked = replace(
        describe(example_table(), 0, GIVEN), predicted_s=math.inf, high_s=math.nan, measured_peak_bytes=math.inf
    )

    got = check_json(ranked, parameters=70, active_parameters=7, tool_version="0.1.0")

    json.dumps(got, allow_nan=False)
    assert (got["step_time_s"]["predicted"], got["step_time_s"]["high"]) == (None, None)


def test_what_ran_has_its_measurement_and_its_verdict() -> None:
    by_key = {layout["key"]: layout for layout in tune_json(tried_report())["layouts"]}

    assert by_key[KEYS[0]]["step_time_s"]["measured"] == 10.5
    assert by_key[KEYS[0]]["peak_memory_bytes"]["measured"] == 55 * 2**30
    assert by_key[KEYS[0]]["basis"] == "measured"
    assert by_key[KEYS[1]]["verdict"] == "out-of-memory"
    assert by_key[KEYS[1]]["place"] is None
    assert by_key[KEYS[3]]["basis"] == "fitted"


def test_nothing_fits_is_a_null_winner() -> None:
    scored = example_table()
    rows = scored.table.take(slice(4, 5))
    alone = replace(scored, table=rows, estimates=scored.estimates.take(slice(4, 5)), verdicts=scored.verdicts[4:])

    got = tune_json(report_of(alone))

    assert got["winner"] is None
    assert [(layout["key"], layout["place"], layout["verdict"]) for layout in got["layouts"]] == [
        (KEYS[4], None, "does-not-fit")
    ]


def test_report_json_is_the_answer_of_tune_and_details() -> None:
    report = tried_report()
    whole = report_json(report)

    details = whole.pop("details")
    assert whole == tune_json(report)
    assert set(details["layouts"]) == {layout["key"] for layout in whole["layouts"]}


def test_a_report_survives_the_file(tmp_path: Path) -> None:
    report = tried_report()
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report_json(report), allow_nan=False), encoding="utf-8")

    results = {ranked.key: ranked.result for ranked in report.layouts if ranked.result is not None}

    assert read_report(path, results) == report
