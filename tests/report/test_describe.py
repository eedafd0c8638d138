from dataclasses import replace

import pytest

from autotune.cost.profile import Factors
from autotune.report.basis import prediction_basis
from autotune.report.describe import describe, describe_invalid, utilisation
from autotune.space.rules import Reason
from autotune.spec.axes import AXIS_NAMES
from autotune.spec.cluster import ClusterSpec
from autotune.spec.figure import Basis, Figure
from autotune.spec.layout import Layout
from autotune.spec.verdict import Origin, Verdict
from autotune.spec.workload import Problem
from tests.examples import GIB, problem
from tests.report.reports import KEYS, example_table, measured, question_of_512, scored_table

ORIGINS = dict.fromkeys(AXIS_NAMES, Origin.SEARCHED)


def with_cluster(question: Problem, **changes: object) -> Problem:
    return replace(question, cluster=replace(question.cluster, **changes))  # type: ignore[arg-type]


def with_basis(cluster: ClusterSpec, basis: Basis) -> ClusterSpec:
    """The same machines, every figure with this basis."""

    def figures(spec: object) -> dict[str, object]:
        names = spec.__dataclass_fields__  # type: ignore[attr-defined]
        values = {name: getattr(spec, name) for name in names}
        rebased: dict[str, object] = {
            name: replace(value, basis=basis) for name, value in values.items() if isinstance(value, Figure)
        }
        if "peak_flops_per_s" in values:
            peaks = values["peak_flops_per_s"]
            rebased["peak_flops_per_s"] = {name: replace(peak, basis=basis) for name, peak in peaks.items()}
        return rebased

    return replace(
        cluster,
        gpu=replace(cluster.gpu, **figures(cluster.gpu)),  # type: ignore[arg-type]
        intra_node=replace(cluster.intra_node, **figures(cluster.intra_node)),  # type: ignore[arg-type]
        inter_node=replace(cluster.inter_node, **figures(cluster.inter_node)),  # type: ignore[arg-type]
    )


def test_the_parts_of_a_layout_add_up_to_its_totals() -> None:
    ranked = describe(example_table(), 0, ORIGINS)

    assert sum(ranked.memory_bytes.values()) == pytest.approx(60 * GIB)
    assert sum(ranked.time_s.values()) == pytest.approx(10.0)
    assert (ranked.peak_bytes, ranked.predicted_s) == (pytest.approx(60 * GIB), pytest.approx(10.0))
    assert ranked.upper_bytes == pytest.approx(1.08 * 60 * GIB)


def test_the_interval_is_around_the_prediction_and_unknown_without_residuals() -> None:
    # 0.9 and 1.125 times 10 s.
    known = describe(example_table(interval=(0.9, 1.125)), 0, ORIGINS)
    unknown = describe(example_table(), 0, ORIGINS)

    assert (known.low_s, known.high_s) == (9.0, 11.25)
    assert (unknown.low_s, unknown.high_s) == (None, None)


def test_speed_is_that_of_the_number_that_ranks() -> None:
    # 8192 · 1024 tokens a step on 512 GPUs: 16,384 a GPU. In 10 s 1,638.4 tokens/s, in 8 s 2,048.
    predicted = describe(example_table(), 0, ORIGINS)
    ran = describe(example_table(), 0, ORIGINS, result=measured(8.0))

    assert predicted.tokens_per_s_per_gpu == pytest.approx(1638.4)
    assert ran.tokens_per_s_per_gpu == pytest.approx(2048.0)
    assert ran.mfu == pytest.approx((predicted.mfu or 0) * 10 / 8)


def test_idle_gpus_do_not_count_as_slow_ones() -> None:
    # tp8 on a cluster of 512: 8192 · 1024 tokens in 100 s on the 8 GPUs that work.
    ranked = describe(scored_table([Layout(tp=8)], [100.0], [GIB]), 0, ORIGINS)

    assert ranked.tokens_per_s_per_gpu == pytest.approx(8192 * 1024 / 100 / 8)


def test_the_mfu_of_llama_3_8b_follows_its_51_gflop_per_token() -> None:
    # NVIDIA Megatron-Bridge performance summary: Llama3 8B at 8192 tokens counts 51.47 GFLOP a token.
    # 1,000 tokens/s a GPU are 51.47 TFLOP/s, of 989 TFLOP/s dense bf16: 5.204 %.
    tokens_per_gpu = 8192 * 1024 / 512

    got = utilisation(question_of_512(), step_s=tokens_per_gpu / 1000, gpus=512)

    assert got == pytest.approx(0.05204, rel=2e-4)


def test_there_is_no_mfu_without_a_datasheet_peak() -> None:
    question = problem()
    cpu = with_cluster(question, gpu=replace(question.cluster.gpu, device="cpu"))
    probed = replace(question, cluster=with_basis(question.cluster, Basis.MEASURED))
    without = with_cluster(question, gpu=replace(question.cluster.gpu, peak_flops_per_s={}))

    assert utilisation(question, 1.0, 8) is not None
    assert utilisation(cpu, 1.0, 8) is None
    assert utilisation(probed, 1.0, 8) is None
    assert utilisation(without, 1.0, 8) is None


def test_an_invalid_layout_is_known_by_its_reasons_alone() -> None:
    reason = Reason(code="heads-divide-tp", axes=("tp",), message="tp=3 does not divide num_attention_heads=32")

    got = describe_invalid(Layout(tp=3), ORIGINS, (reason,), limit_bytes=GIB)

    assert got.verdict is Verdict.INVALID
    assert got.reasons == (reason,)
    assert (got.place, got.predicted_s, got.peak_bytes, got.basis, got.memory_bytes) == (None, None, None, None, {})


def test_a_layout_that_does_not_fit_says_by_how_much_and_what_lowers_the_largest_part() -> None:
    # 90 of 79 GiB; two thirds of it, 60 GiB, are weights.
    (reason,) = describe(example_table(), 4, ORIGINS).reasons

    assert reason.code == "memory-limit"
    for words in ("needs 90.0 GiB, 11.0 GiB more than the 79.0 GiB", "weights with 60.0 GiB", "raise dp_shard"):
        assert words in reason.message


def test_a_layout_that_is_borderline_says_how_far_the_bound_is_over() -> None:
    (reason,) = describe(example_table(), 1, ORIGINS).reasons

    assert reason.code == "memory-upper-bound"
    for words in ("predicted at 75.0 GiB", "up to 81.0 GiB", "may use 79.0 GiB"):
        assert words in reason.message


def test_a_node_with_too_little_ram_is_a_reason_of_its_own() -> None:
    scored = scored_table([Layout.from_key(KEYS[0])], [1.0], [GIB], host_bytes=3072 * GIB)

    ranked = describe(scored, 0, ORIGINS)

    assert ranked.verdict is Verdict.DOES_NOT_FIT
    assert [reason.code for reason in ranked.reasons] == ["host-memory"]
    assert "3.0 TiB" in ranked.reasons[0].message
    assert "2.0 TiB" in ranked.reasons[0].message


def test_a_prediction_is_as_good_as_its_worst_figure() -> None:
    question = problem()
    measured_rates = with_basis(question.cluster, Basis.MEASURED)
    fitted_rates = with_basis(question.cluster, Basis.FITTED)
    one_datasheet = replace(measured_rates, gpu=replace(measured_rates.gpu, kernel_launch_s=_datasheet()))

    assert prediction_basis(replace(question, cluster=one_datasheet), Factors()) is Basis.DATASHEET
    for cluster in (measured_rates, fitted_rates):
        assert prediction_basis(replace(question, cluster=cluster), Factors()) is Basis.INTERPOLATED


def test_links_that_nothing_crosses_do_not_lower_the_basis() -> None:
    # One node of eight on NVLink: the link between nodes carries nothing. One GPU: no link does.
    one_node = with_basis(problem().cluster, Basis.MEASURED)
    slow = replace(one_node.inter_node, latency_s=_datasheet())
    alone = replace(one_node, gpus_per_node=1, nvlink_domain_gpus=1, intra_node=slow)

    assert _basis(replace(one_node, inter_node=slow)) is Basis.INTERPOLATED
    assert _basis(replace(one_node, nodes=2, inter_node=slow)) is Basis.DATASHEET
    assert _basis(replace(one_node, intra_node=slow)) is Basis.DATASHEET
    assert _basis(alone) is Basis.INTERPOLATED


def test_runs_that_moved_the_times_make_a_prediction_fitted() -> None:
    question = problem()

    assert prediction_basis(question, Factors(compute_time=1.1, fitted_to=2)) is Basis.FITTED
    assert prediction_basis(question, Factors(memory=1.1, fitted_to=2)) is Basis.DATASHEET
    assert prediction_basis(question, Factors()) is Basis.DATASHEET


def _datasheet() -> Figure:
    return Figure(value=1e-6, basis=Basis.DATASHEET, source="round figure for tests", date="2025-01-01")


def _basis(cluster: ClusterSpec) -> Basis:
    return prediction_basis(replace(problem(), cluster=cluster), Factors())
