from dataclasses import replace

import pytest

from autotune.accuracy.blame import blame_memory, blame_time
from autotune.spec.measured import MemoryKind
from autotune.units import GIB
from tests.accuracy.predicted import base_run, predicted


def row(run, parts, took_s):
    return replace(predicted(replace(run, step_time_s=took_s)), time_parts_s=parts)


def test_the_part_that_explains_the_errors_of_a_source_is_named(tmp_path):
    run = base_run(tmp_path)
    # Truth: compute as predicted, communication three times as long.
    shares = [(8.0, 2.0), (5.0, 5.0), (9.0, 1.0), (6.0, 4.0)]
    rows = [row(run, {"forward": c, "tensor_parallel": t}, c + 3 * t) for c, t in shares]

    found = blame_time(rows)

    assert {suspicion.part for suspicion in found} == {"tensor_parallel"}
    assert found[0].scale == pytest.approx(3.0, rel=0.1)
    assert found[0].error == pytest.approx(10 / 14 - 1)


def test_sources_are_blamed_apart(tmp_path):
    run = base_run(tmp_path)
    other = replace(run, source="other")
    rows = [row(run, {"forward": 5.0, "optimizer": 1.0}, 11.0), row(other, {"forward": 1.0, "optimizer": 5.0}, 11.0)]

    assert [suspicion.part for suspicion in blame_time(rows)] == ["forward", "optimizer"]


def test_what_lives_outside_the_framework_is_not_blamed_for_a_peak_of_the_framework(tmp_path):
    run = replace(base_run(tmp_path), peak_memory_bytes=20.0 * GIB)
    inside = predicted(run, inside_gib=1.0, outside_gib=9.0, memory_kind=MemoryKind.RESERVED)
    device = predicted(
        replace(run, source="other"), inside_gib=1.0, outside_gib=9.0, memory_kind=MemoryKind.DEVICE
    )  # fmt: skip

    assert [suspicion.part for suspicion in blame_memory([inside, device])] == ["activations", "outside"]


def test_rows_without_an_error_are_not_blamed(tmp_path):
    assert blame_time([predicted(base_run(tmp_path), time_counts=False)]) == []
