import time
import tracemalloc

import pytest

from autotune.errors import InputError
from autotune.space import enumeration
from autotune.space.arithmetic_rules import COMMON_RULES
from autotune.space.enumeration import enumerate_layouts
from autotune.space.values import axis_values, every_value
from autotune.spec.layout import Layout
from autotune.spec.search_space import AxisChoice, SearchSpace
from tests.examples import llama_3_70b, problem, tiny_model
from tests.space.rows import space_of

TORCH_SCHEDULES = ("1f1b", "gpipe", "interleaved", "breadth-first", "interleaved-zb", "zb-v", "dualpipev")
DENSE_AXES = (
    "tp", "pp", "vpp", "dp_replicate", "dp_shard", "cp", "zero_stage", "sequence_parallel", "micro_batch_size",
    "schedule", "recompute",
)  # fmt: skip


def layouts(enumeration):
    return [enumeration.table.layout(row) for row in range(len(enumeration.table))]


def test_two_gpus_are_tensor_pipeline_or_data_parallel():
    # tp, pp, dp_replicate in {1, 2}: 8 combinations, three of them use 2 GPUs
    question = problem(model=tiny_model(), gpus_per_node=2)

    got = enumerate_layouts(space_of(tp=None, pp=None, dp_replicate=None), question, COMMON_RULES, schedules=("1f1b",))

    assert layouts(got) == [Layout(dp_replicate=2), Layout(tp=2), Layout(pp=2)]
    assert (got.total, got.valid, got.rejected) == (8, 3, {"uses-all-gpus": 5})


def test_a_rejected_value_stands_for_all_combinations_that_hold_it():
    # 3 heads: tp=2 falls at once and stands for 2 (pp) · 2 (dp_replicate) = 4. Of the 4 with tp=1, the two with
    # pp·dp_replicate = 1 or 4 miss the 2 GPUs.
    question = problem(model=tiny_model(heads=3), gpus_per_node=2)

    got = enumerate_layouts(space_of(tp=None, pp=None, dp_replicate=None), question, COMMON_RULES, schedules=("1f1b",))

    assert layouts(got) == [Layout(dp_replicate=2), Layout(pp=2)]
    assert (got.total, got.valid, got.rejected) == (8, 2, {"tp-divides-heads": 4, "uses-all-gpus": 2})


def test_an_axis_that_the_space_does_not_name_is_off():
    got = enumerate_layouts(space_of(dp_replicate=None), problem(), COMMON_RULES, schedules=("1f1b",))

    assert layouts(got) == [Layout(dp_replicate=8)]


def test_only_schedules_of_the_engine_are_searched():
    question = problem(model=tiny_model(), gpus_per_node=2)

    got = enumerate_layouts(
        space_of(pp=(2,), vpp=None, schedule=None), question, COMMON_RULES, schedules=("1f1b", "gpipe", "zb-v")
    )

    assert layouts(got) == [Layout(pp=2), Layout(pp=2, schedule="gpipe"), Layout(pp=2, vpp=2, schedule="zb-v")]


def test_a_listed_schedule_that_the_engine_does_not_run_is_rejected_as_such():
    got = enumerate_layouts(space_of(pp=(8,), schedule=("zb-h1",)), problem(), COMMON_RULES, schedules=("1f1b",))

    assert got.rejected == {"schedule-of-engine": 1}
    assert got.emptied_by[0].message == "this engine does not run schedule zb-h1; it runs 1f1b"


def test_a_maximum_cuts_every_list():
    space = SearchSpace(
        axes={
            "tp": AxisChoice(values=None, maximum=4),
            "micro_batch_size": AxisChoice(values=(1, 3, 16), maximum=8),
        }
    )

    values = axis_values(space, problem(), ("1f1b",))

    assert values["tp"] == (1, 2, 4)
    assert values["micro_batch_size"] == (1, 3)


def test_chunks_divide_the_layers_or_the_layers_with_embedding_and_loss():
    # 94: 1 2 47 94; 95: 1 5 19 (95); 96: 1 2 3 4 6 8 12 16 24 32 48 (96)
    question = problem(model=tiny_model(layers=94))

    assert every_value("vpp", question, ()) == (1, 2, 3, 4, 5, 6, 8, 12, 16, 19, 24, 32, 47, 48, 94)


def test_3_nodes_of_5_gpus_and_a_pipeline_of_5_are_normal():
    # 5 ranks a pipeline and 3 nodes: 15 GPUs, tp·dp = 3
    model = tiny_model(layers=10, heads=6, intermediate_size=12)
    question = problem(model=model, nodes=3, gpus_per_node=5, global_batch_size=60)

    got = enumerate_layouts(space_of(pp=(5,), tp=None, dp_replicate=None), question, COMMON_RULES, schedules=("1f1b",))

    assert layouts(got) == [Layout(pp=5, dp_replicate=3), Layout(pp=5, tp=3)]


def test_a_kept_layout_is_in_the_table_once_whether_the_space_holds_it_or_not():
    inside, outside = Layout(tp=8), Layout(tp=4, micro_batch_size=2)

    got = enumerate_layouts(
        space_of(tp=None, dp_replicate=None),
        problem(),
        COMMON_RULES,
        schedules=("1f1b",),
        keep=(inside, outside, outside),
    )

    assert layouts(got).count(inside) == 1
    assert layouts(got).count(outside) == 1
    assert got.table.row_of(outside) == got.valid == len(got.table) - 1
    assert sum(got.rejected.values()) + got.valid == got.total


def test_a_kept_layout_survives_an_empty_space():
    got = enumerate_layouts(space_of(tp=(3,)), problem(), COMMON_RULES, schedules=("1f1b",), keep=(Layout(tp=8),))

    assert layouts(got) == [Layout(tp=8)]
    assert got.valid == 0


def test_the_same_question_gives_the_same_rows_in_the_same_order():
    space = space_of(**dict.fromkeys(DENSE_AXES))

    first, second = (
        enumerate_layouts(space, problem(), COMMON_RULES, schedules=TORCH_SCHEDULES).table for _ in range(2)
    )

    assert all((getattr(first, axis) == getattr(second, axis)).all() for axis in DENSE_AXES)


def test_a_space_with_more_layouts_than_a_table_holds_names_the_axis_to_narrow(monkeypatch):
    # dp_replicate 8, micro-batches 1, 2, 4 and 8 of batch 64, recompute 3 ways: 12 layouts
    monkeypatch.setattr(enumeration, "MOST_ROWS", 11)
    space = space_of(dp_replicate=(8,), micro_batch_size=None, recompute=None)

    with pytest.raises(InputError, match="recompute alone make more than 11 legal layouts"):
        enumerate_layouts(space, problem(), COMMON_RULES, schedules=("1f1b",))


def test_a_million_layouts_of_70b_on_512_gpus_take_a_second_and_half_a_gigabyte():
    # measured on one core: 986,370 layouts in 0.13 s; the bounds leave room for a busy machine
    question = problem(model=llama_3_70b(), nodes=64, sequence_length=8192, global_batch_size=1024)
    space = space_of(**dict.fromkeys(DENSE_AXES))

    tracemalloc.start()
    started_s = time.perf_counter()
    got = enumerate_layouts(space, question, COMMON_RULES, schedules=TORCH_SCHEDULES)
    taken_s = time.perf_counter() - started_s
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert 500_000 < got.valid < 2_000_000
    assert sum(got.rejected.values()) + got.valid == got.total
    assert taken_s < 2
    assert peak_bytes < 512 * 2**20
