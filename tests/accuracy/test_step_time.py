import pytest

from autotune.accuracy.data import shipped_assumptions, shipped_files
from autotune.accuracy.step_time import RULES, complete
from autotune.spec.measured import read_runs
from tests.accuracy.runs import runs_of

BRIDGE = {"source": "megatron_bridge_perf"}


def test_a_missing_step_time_follows_from_the_flop_rate_by_the_sources_rule(tmp_path):
    (run,) = runs_of(tmp_path, {**BRIDGE, "step_time_s": "", "tflops_per_gpu": "500"})

    # Llama-3 8B: 8,030,261,248 parameters less 128256 · 4096 of the embedding, 6 operations each;
    # 6 · 32 layers · 4096 · 8192 of attention. 128 · 8192 tokens over 16 GPUs at 500 TFLOP/s.
    flops_per_token = 6 * (8030261248 - 128256 * 4096) + 6 * 32 * 4096 * 8192
    assert complete(run).step_time_s == pytest.approx(flops_per_token * 128 * 8192 / (16 * 500e12))


def test_a_missing_step_time_follows_from_an_mfu_as_a_share_or_in_per_cent(tmp_path):
    share, percent = runs_of(
        tmp_path, {**BRIDGE, "step_time_s": "", "mfu": "0.4"}, {**BRIDGE, "step_time_s": "", "mfu": "40"}
    )

    assert complete(share).step_time_s == pytest.approx(complete(percent).step_time_s)
    assert complete(share).step_time_s == pytest.approx(
        (6 * (8030261248 - 128256 * 4096) + 6 * 32 * 4096 * 8192) * 128 * 8192 / (16 * 0.4 * 989e12)
    )


def test_a_source_without_a_rule_has_no_step_time_from_its_flop_rate(tmp_path):
    (run,) = runs_of(tmp_path, {"step_time_s": "", "tflops_per_gpu": "500"})

    assert complete(run).step_time_s is None


def test_a_flop_rate_wins_over_rounded_tokens_only_where_the_rule_is_the_sources(tmp_path):
    flops = 6 * (8030261248 - 128256 * 4096) + 6 * 32 * 4096 * 8192
    exact = flops * 128 * 8192 / (16 * 500e12)
    rounded = {**BRIDGE, "tflops_per_gpu": "500", "tokens_per_s_per_gpu": "10240"}  # 160 · 64
    near, far, finer = runs_of(
        tmp_path,
        {**rounded, "step_time_s": str(exact * 1.01)},
        {**rounded, "step_time_s": str(exact * 1.2)},
        {**rounded, "step_time_s": str(exact * 1.01), "tokens_per_s_per_gpu": "10241"},
    )

    assert complete(near).step_time_s == pytest.approx(exact)
    assert complete(far).step_time_s == pytest.approx(exact * 1.2)
    assert complete(finer).step_time_s == pytest.approx(exact * 1.01)


@pytest.mark.parametrize("source", sorted(RULES))
def test_a_rule_reproduces_what_its_source_prints(source):
    (path,) = (path for path in shipped_files() if path.stem == source)
    runs, _ = read_runs(path, shipped_assumptions())
    ratios = []
    for run in runs:
        rate = run.throughput.tflops_per_gpu
        if rate is None or run.step_time_s is None or run.suspect:
            continue
        flops = RULES[source].flops_per_token(run.problem.model, run.problem.workload.sequence_length)
        ratios.append(flops * run.problem.workload.tokens_per_step / (rate * 1e12 * run.sweep.gpus) / run.step_time_s)
    # The middle one: a few rows count differently (another rule in one release, an embedding that is held twice).
    if ratios:
        assert sorted(ratios)[len(ratios) // 2] == pytest.approx(1.0, abs=0.005)
