"""What must hold of the cost model for every layout."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from autotune.cost.profile import MemoryProfile
from autotune.spec.layout import Layout
from autotune.spec.model import MoeSpec
from autotune.spec.schedules import SCHEDULES
from autotune.spec.workload import Problem
from tests.cost.architectures import DEEPSEEK_V3, LLAMA_32_1B
from tests.cost.profiles import estimate_of, figure, master_copy_profile, only_copy_profile
from tests.examples import llama_3_8b, problem, qwen3_30b_a3b, tiny_model

QUESTIONS = {
    "dense": problem(model=llama_3_8b(), nodes=8, global_batch_size=512),
    "tied": problem(model=LLAMA_32_1B, nodes=8, global_batch_size=512),
    "mixture": problem(model=qwen3_30b_a3b(), nodes=8, global_batch_size=512),
    "latent": problem(model=DEEPSEEK_V3, nodes=8, global_batch_size=512),
    "tiny": problem(
        model=tiny_model(moe=MoeSpec(num_experts=8, experts_per_token=2, expert_intermediate_size=16, dense_layers=1)),
        nodes=8,
        sequence_length=128,
        global_batch_size=512,
    ),
}
PROFILES = {
    "master": master_copy_profile(allocator_slack=figure(0.03)),
    "only": only_copy_profile(selective_recompute=("core_attention",)),
}

questions = st.sampled_from(sorted(QUESTIONS)).map(QUESTIONS.__getitem__)
profiles = st.sampled_from(sorted(PROFILES)).map(PROFILES.__getitem__)
degrees = st.sampled_from([1, 2, 4])


@st.composite
def layouts(draw: st.DrawFn, *, recompute: str | None = None) -> Layout:
    schedule = draw(st.sampled_from(sorted(SCHEDULES)))
    pp = draw(degrees)
    if pp == 1:
        schedule = "1f1b"
    fixed = SCHEDULES[schedule].fixed_vpp
    vpp = 1 if pp == 1 else fixed or draw(st.sampled_from([2, 4]))
    tp, cp, shard = draw(degrees), draw(degrees), draw(st.sampled_from([1, 2, 8]))
    return Layout(
        tp=tp,
        pp=pp,
        vpp=vpp,
        cp=cp,
        dp_replicate=draw(degrees),
        dp_shard=shard,
        ep=draw(st.sampled_from([e for e in (1, 2, 4) if (tp * cp * shard) % e == 0])),
        etp=1,
        zero_stage=0 if shard == 1 else draw(st.sampled_from([1, 2, 3])),
        sequence_parallel=tp > 1 and draw(st.booleans()),
        micro_batch_size=draw(st.sampled_from([1, 2, 3, 4])),
        schedule=schedule,
        recompute=recompute or draw(st.sampled_from(["none", "selective", "full"])),
    )


@given(st.lists(layouts(), min_size=1, max_size=20), questions, profiles)
@settings(max_examples=60, deadline=None)
def test_a_row_costs_the_same_alone_as_in_a_table(
    many: list[Layout], question: Problem, profile: MemoryProfile
) -> None:
    together = estimate_of(many, question, profile)
    for row, layout in enumerate(many):
        alone = estimate_of([layout], question, profile)
        for part, column in together.memory.parts.items():
            assert column[row] == alone.memory.parts[part][0], part
        for part, column in together.time.parts.items():
            assert column[row] == alone.time.parts[part][0], part
        assert together.fullest_stage[row] == alone.fullest_stage[0]


@given(st.lists(layouts(), min_size=1, max_size=20), questions, profiles)
@settings(max_examples=60, deadline=None)
def test_every_number_is_finite_and_none_is_negative(
    many: list[Layout], question: Problem, profile: MemoryProfile
) -> None:
    got = estimate_of(many, question, profile)
    for name, column in (got.memory.parts | got.time.parts).items():
        assert np.all(np.isfinite(column)), name
        assert np.all(column >= 0), name
    assert np.all(got.time.forward_s > 0)
    assert np.all(got.fullest_stage < [layout.pp for layout in many])


@given(st.lists(layouts(), min_size=1, max_size=20), questions, profiles)
@settings(max_examples=60, deadline=None)
def test_parts_sum_to_the_totals(many: list[Layout], question: Problem, profile: MemoryProfile) -> None:
    got = estimate_of(many, question, profile)

    assert np.allclose(np.sum(list(got.memory.parts.values()), axis=0), got.memory.peak_bytes, rtol=1e-12)
    assert np.allclose(np.sum(list(got.time.parts.values()), axis=0), got.time.step_s, rtol=1e-12)


@given(layouts(), questions, profiles, st.sampled_from([1, 2, 3]))
@settings(max_examples=100, deadline=None)
def test_memory_does_not_grow_with_dp_shard_at_a_fixed_global_and_micro_batch(
    layout: Layout, question: Problem, profile: MemoryProfile, stage: int
) -> None:
    sharded = [replace(layout, dp_shard=n * layout.ep, zero_stage=stage) for n in (2, 4, 8, 16)]
    peak_bytes = estimate_of(sharded, question, profile).memory.peak_bytes

    assert np.all(np.diff(peak_bytes) <= 1e-9 * peak_bytes[:-1])


@given(layouts(recompute="none"), questions, profiles)
@example(
    layout=Layout(pp=2, vpp=2, dp_shard=2, zero_stage=2, schedule="bitpipe"),
    question=QUESTIONS["latent"],
    profile=PROFILES["master"],
)
@settings(max_examples=150, deadline=None)
def test_recomputation_never_raises_memory_nor_lowers_time(
    layout: Layout, question: Problem, profile: MemoryProfile
) -> None:
    modes = [replace(layout, recompute=mode) for mode in ("none", "selective", "full")]
    got = estimate_of(modes, question, profile)
    none, selective, full = got.memory.peak_bytes
    slack = 1 + 1e-9

    assert selective <= none * slack
    assert full <= none * slack
    assert got.time.step_s[0] <= got.time.step_s[1] * slack
    assert got.time.step_s[0] <= got.time.step_s[2] * slack


@given(layouts(), questions, profiles)
@settings(max_examples=60, deadline=None)
def test_memory_grows_with_the_micro_batch_at_a_fixed_number_of_micro_batches(
    layout: Layout, question: Problem, profile: MemoryProfile
) -> None:
    sizes = (1, 2, 4)
    peaks = [
        estimate_of(
            [replace(layout, micro_batch_size=size)],
            replace(question, workload=replace(question.workload, global_batch_size=512 * size)),
            profile,
        ).memory.peak_bytes[0]
        for size in sizes
    ]

    assert peaks[0] < peaks[1] < peaks[2]


@given(layouts(), questions, profiles)
@settings(max_examples=60, deadline=None)
def test_zero_stages_hold_less_the_higher_they_are(layout: Layout, question: Problem, profile: MemoryProfile) -> None:
    """Of what lasts from step to step; gathered copies and buffers are the price of it."""
    stages = [replace(layout, dp_shard=8, zero_stage=stage) for stage in (1, 2, 3)]
    memory = estimate_of(stages, question, replace(profile, upper_bound=figure(1.0))).memory
    kept = memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes

    assert kept[0] >= kept[1] >= kept[2]


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_a_slower_network_never_makes_a_layout_faster(name: str) -> None:
    question = QUESTIONS[name]
    link = question.cluster.inter_node
    half = replace(link, bandwidth_bytes_per_s=figure(link.bandwidth_bytes_per_s.value / 2))
    slower = replace(question, cluster=replace(question.cluster, inter_node=half))
    some = [Layout(tp=4, pp=2, dp_shard=8, zero_stage=z, sequence_parallel=True, ep=8) for z in (1, 2, 3)]

    assert np.all(estimate_of(some, slower).time.step_s >= estimate_of(some, question).time.step_s)
