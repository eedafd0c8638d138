"""Laws of the space: the staged enumerator equals brute force, and a rule reads only the axes it names."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.space import enumeration
from autotune.space.arithmetic_rules import COMMON_RULES
from autotune.space.enumeration import EXPANSION, enumerate_layouts, rule_order
from autotune.space.optional_rules import (
    even_stages,
    fp8_tokens_multiple,
    kv_heads_divide_tp,
    micro_batches_fill_stages,
    runs_schedules,
)
from autotune.space.rules import broken_rules
from autotune.space.values import axis_values
from autotune.spec.axes import AXES, AXIS_NAMES, AxisKind
from autotune.spec.layout import Layout, LayoutTable, value_of
from autotune.spec.model import MoeSpec
from autotune.spec.schedules import SCHEDULES
from autotune.spec.search_space import AxisChoice, SearchSpace
from tests.examples import problem, tiny_model

ENGINE_RULES = (
    kv_heads_divide_tp(needs="x"),
    even_stages(needs="x", spare_slots=2),
    micro_batches_fill_stages(needs="x", schedules=("1f1b", "interleaved"), per_chunk=True),
    fp8_tokens_multiple(needs="x"),
    runs_schedules(("1f1b", "interleaved", "zb-v")),
)

models = st.builds(
    tiny_model,
    layers=st.sampled_from([1, 4, 5, 6]),
    heads=st.sampled_from([4, 6, 8]),
    kv_heads=st.sampled_from([2, 4]),
    intermediate_size=st.sampled_from([12, 64]),
    moe=st.none()
    | st.builds(
        MoeSpec,
        num_experts=st.sampled_from([4, 6]),
        experts_per_token=st.just(2),
        expert_intermediate_size=st.sampled_from([8, 12]),
        dense_layers=st.sampled_from([0, 1]),
    ),
)
problems = st.builds(
    problem,
    model=models,
    nodes=st.sampled_from([1, 3]),
    gpus_per_node=st.sampled_from([1, 2, 4, 8]),
    sequence_length=st.sampled_from([24, 64]),
    global_batch_size=st.sampled_from([6, 8, 12]),
)


@st.composite
def spaces(draw):
    """Up to five axes, each with every value, a maximum, or a short list that may hold values nothing divides.

    Half of them leave the degrees open, so that there is something to find.
    """
    open_axes = draw(st.sampled_from([(), ("tp", "pp", "dp_replicate", "dp_shard", "zero_stage")]))
    axes = {name: AxisChoice(values=None, maximum=None) for name in open_axes}
    for name in draw(st.lists(st.sampled_from(AXIS_NAMES), unique=True, max_size=5)):
        if name in axes:
            continue
        axis = next(axis for axis in AXES if axis.name == name)
        everything = {AxisKind.DEGREE: (1, 2, 3, 4, 7, 8), AxisKind.FLAG: (False, True)}.get(axis.kind, axis.choices)
        some = st.lists(st.sampled_from(everything), min_size=1, max_size=3, unique=True).map(tuple)
        maximum = draw(st.sampled_from([None, 4])) if axis.kind is AxisKind.DEGREE else None
        axes[name] = AxisChoice(values=draw(st.none() | some), maximum=maximum)
    return SearchSpace(axes=axes)


SCHEDULES_OF_ENGINE = ("1f1b", "interleaved", "zb-v", "dualpipe")


def all_combinations(space, question):
    """The whole product as a table, rows in the enumerator's order."""
    values = axis_values(space, question, SCHEDULES_OF_ENGINE)
    grid = np.meshgrid(*(np.array(values[axis], dtype=np.int64) for axis in EXPANSION), indexing="ij")
    return LayoutTable.from_columns({axis: column.ravel() for axis, column in zip(EXPANSION, grid, strict=True)})


@settings(deadline=None, max_examples=120)
@given(spaces(), problems, st.booleans(), st.sampled_from([5, enumeration.BLOCK_ROWS]))
def test_the_staged_enumerator_equals_brute_force_over_the_whole_product(space, question, with_engine, block_rows):
    rules = (*COMMON_RULES, *ENGINE_RULES) if with_engine else COMMON_RULES
    whole = all_combinations(space, question)
    alive = np.ones(len(whole), dtype=np.bool_)
    expected = Counter()
    for rule in rule_order(rules, SCHEDULES_OF_ENGINE):
        holds = alive & rule.holds(whole, question)
        expected[rule.code] += int(alive.sum() - holds.sum())
        alive = holds
    legal = whole.take(alive)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enumeration, "BLOCK_ROWS", block_rows)
        got = enumerate_layouts(space, question, rules, schedules=SCHEDULES_OF_ENGINE)

    assert got.total == len(whole)
    assert got.valid == len(got.table) == len(legal)
    assert got.rejected == {code: count for code, count in expected.items() if count}
    for axis in AXIS_NAMES:
        assert np.array_equal(getattr(got.table, axis), getattr(legal, axis))


@settings(deadline=None, max_examples=60)
@given(spaces(), problems)
def test_counts_add_up_and_an_empty_answer_has_a_reason(space, question):
    got = enumerate_layouts(space, question, COMMON_RULES, schedules=SCHEDULES_OF_ENGINE)

    assert sum(got.rejected.values()) + got.valid == got.total
    assert bool(got.emptied_by) == (got.valid == 0)
    assert all(reason.message for reason in got.emptied_by)


@settings(deadline=None, max_examples=30)
@given(spaces(), problems)
def test_every_enumerated_row_passes_check_alone_and_uses_every_gpu(space, question):
    table = enumerate_layouts(space, question, COMMON_RULES, schedules=SCHEDULES_OF_ENGINE).table

    for row in range(0, len(table), max(1, len(table) // 8)):
        assert broken_rules(table, row, question, COMMON_RULES) == ()
        assert table.layout(row).gpus == question.cluster.gpus


def legal_by_hand(layout: Layout, question) -> bool:
    """The rules of arithmetic once more, for one layout, in plain Python."""
    model, length, batch = question.model, question.workload.sequence_length, question.workload.global_batch_size
    facts = SCHEDULES[layout.schedule]
    if layout.tp * layout.cp * layout.pp * layout.dp_replicate * layout.dp_shard != question.cluster.gpus:
        return False
    micro_batches = batch / (layout.micro_batch_size * layout.dp_replicate * layout.dp_shard)
    return all(
        (
            micro_batches == int(micro_batches),
            model.num_attention_heads % layout.tp == 0,
            model.intermediate_size % layout.tp == 0,
            layout.cp == 1 or length % (2 * layout.cp) == 0,
            not layout.sequence_parallel or (layout.tp > 1 and length % (layout.cp * layout.tp) == 0),
            (layout.zero_stage == 0) == (layout.dp_shard == 1),
            layout.ep == layout.etp == 1,
            layout.pp * layout.vpp <= model.num_hidden_layers,
            layout.pp > 1 or (layout.vpp == 1 and layout.schedule == "1f1b"),
            layout.vpp == facts.fixed_vpp if facts.fixed_vpp else layout.vpp > 1,
            not facts.even_pp or layout.pp % 2 == 0,
            not facts.micro_batches_multiple_of_pp or micro_batches % layout.pp == 0,
            micro_batches >= facts.min_micro_batches_per_stage * layout.pp,
        )
    )


@pytest.mark.parametrize(("nodes", "gpus_per_node", "batch"), [(3, 4, 12), (3, 8, 24), (1, 5, 10)])
def test_the_enumerator_finds_exactly_the_layouts_that_plain_arithmetic_allows(nodes, gpus_per_node, batch):
    question = problem(
        model=tiny_model(layers=6, heads=12, intermediate_size=24),
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        sequence_length=48,
        global_batch_size=batch,
    )
    axes = {
        "tp": (1, 2, 3, 4), "pp": None, "vpp": (1, 2, 3), "dp_replicate": None, "dp_shard": None, "cp": (1, 3),
        "zero_stage": (0, 3), "sequence_parallel": None, "micro_batch_size": (1, 2), "schedule": None,
        "recompute": ("none",),
    }  # fmt: skip
    space = SearchSpace(axes={name: AxisChoice(values=values, maximum=None) for name, values in axes.items()})
    values = axis_values(space, question, SCHEDULES_OF_ENGINE)
    named = {axis: [value_of(axis, code) for code in codes] for axis, codes in values.items()}
    expected = {
        layout.key
        for combination in product(*named.values())
        if legal_by_hand(layout := Layout(**dict(zip(named, combination, strict=True))), question)
    }

    table = enumerate_layouts(space, question, COMMON_RULES, schedules=SCHEDULES_OF_ENGINE).table

    found = [table.layout(row).key for row in range(len(table))]
    assert len(found) == len(set(found))
    assert set(found) == expected


def columns(draw, rows):
    return {
        axis.name: draw(
            st.lists(
                st.integers(0, len(axis.choices) - 1 if isinstance(axis.off, str) else 3)
                if axis.kind is AxisKind.CHOICE
                else st.booleans()
                if axis.kind is AxisKind.FLAG
                else st.sampled_from([1, 2, 3, 4, 7, 8]),
                min_size=rows,
                max_size=rows,
            )
        )
        for axis in AXES
    }


@pytest.mark.parametrize("rule", rule_order((*COMMON_RULES, *ENGINE_RULES), SCHEDULES_OF_ENGINE), ids=lambda r: r.code)
@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_a_rule_reads_only_the_axes_that_it_names(rule, data):
    question = data.draw(problems)
    question = replace(question, workload=replace(question.workload, precision="fp8"))
    one, other = columns(data.draw, 8), columns(data.draw, 8)
    with_garbage = LayoutTable.from_columns(other | {axis: one[axis] for axis in rule.axes})
    table = LayoutTable.from_columns(one)

    holds = rule.holds(table, question)

    assert np.array_equal(holds, rule.holds(with_garbage, question))
    for row in np.flatnonzero(~holds):
        assert rule.reason(table, int(row), question) == rule.reason(with_garbage, int(row), question)
