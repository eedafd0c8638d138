"""Engine torch: its rules by hand, and that whatever passes them the worker can run."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from autotune.engines.export import why_not_launched
from autotune.engines.torch import TORCH
from autotune.space.arithmetic_rules import COMMON_RULES
from autotune.space.rules import broken_rules
from autotune.spec.figure import Basis, Figure
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.load import from_json
from autotune.spec.outcome import TrialSpec
from autotune.testing import EngineContract
from tests.engines.test_megatron_lm import PREDICTION, with_model, with_workload
from tests.examples import problem, qwen3_30b_a3b, tiny_model


class TestTorchContract(EngineContract):
    def engine(self):
        return TORCH

    def variations(self):
        one, two = problem(), problem(nodes=2)
        plain = Layout(tp=2, dp_replicate=4)
        return {
            "tp": (one, plain, Layout(tp=4, dp_replicate=2)),
            "pp": (one, Layout(tp=2, pp=2, dp_replicate=2), Layout(tp=2, pp=4)),
            "vpp": (
                one,
                Layout(pp=2, vpp=2, dp_replicate=4, schedule="interleaved"),
                Layout(pp=2, vpp=4, dp_replicate=4, schedule="interleaved"),
            ),
            "dp_replicate": (two, Layout(dp_replicate=2, dp_shard=8, zero_stage=3), Layout(dp_shard=16, zero_stage=3)),
            "dp_shard": (one, Layout(dp_shard=8, zero_stage=3), Layout(dp_shard=4, zero_stage=3)),
            "cp": (one, Layout(cp=2, dp_replicate=4), Layout(cp=4, dp_replicate=2)),
            "zero_stage": (one, Layout(dp_shard=8, zero_stage=2), Layout(dp_shard=8, zero_stage=3)),
            "sequence_parallel": (one, plain, replace(plain, sequence_parallel=True)),
            "micro_batch_size": (one, plain, replace(plain, micro_batch_size=2)),
            "schedule": (one, Layout(pp=2, dp_replicate=4), Layout(pp=2, dp_replicate=4, schedule="gpipe")),
            "recompute": (one, plain, replace(plain, recompute="full")),
        }

    def fixed_axes(self):
        return frozenset()

    def broken(self):
        one = problem()
        pipeline = Layout(pp=2, dp_replicate=4)
        return {
            "schedule-of-engine": (one, Layout(pp=2, vpp=2, dp_replicate=4, schedule="hanayo")),
            "tp-divides-kv-heads": (problem(nodes=2), Layout(tp=16)),
            "micro-batches-fill-stages": (problem(global_batch_size=4), pipeline),
            "fsdp2-shards-gradients": (one, Layout(dp_shard=8, zero_stage=1)),
            "learned-positions-are-not-cut": (
                with_model(one, learned_positions=4096),
                Layout(tp=2, dp_replicate=4, sequence_parallel=True),
            ),
            "model-can-be-described": (problem(model=qwen3_30b_a3b()), Layout(dp_replicate=8)),
            "positions-can-be-built": (with_model(one, learned_positions=1024), Layout(dp_replicate=8)),
            "precision-is-run": (with_workload(one, precision="fp8"), Layout(dp_replicate=8)),
        }

    def test_every_axis_is_varied_or_fixed(self):
        # ep and etp can be ranked for a mixture of experts, which a launch rule refuses as a whole.
        assert {*self.variations(), "ep", "etp"} == set(Layout.__dataclass_fields__)


def refused(question, layout):
    return [reason.code for reason in broken_rules(LayoutTable.of([layout]), 0, question, TORCH.rules)]


def test_a_mixture_of_experts_is_ranked_but_not_launched():
    question = problem(model=qwen3_30b_a3b())
    layout = Layout(ep=8, dp_shard=8, zero_stage=3)

    assert refused(question, layout) == []
    assert [reason.code for reason in why_not_launched(TORCH, layout, question)] == ["model-can-be-described"]


@pytest.mark.parametrize(
    ("schedule", "vpp", "sequences", "codes"),
    [
        ("1f1b", 1, 4, []),
        ("1f1b", 1, 3, ["micro-batches-fill-stages"]),
        ("gpipe", 1, 1, []),
        ("breadth-first", 2, 1, []),
        ("zb-v", 2, 1, []),
    ],
)
def test_only_1f1b_needs_a_micro_batch_for_every_stage(schedule, vpp, sequences, codes):
    # pp 4 and micro_batch_size 1: a step has as many micro-batches as sequences
    question = problem(gpus_per_node=4, global_batch_size=sequences)

    assert refused(question, Layout(pp=4, vpp=vpp, schedule=schedule)) == codes


@pytest.mark.parametrize("schedule", ["zb-v", "dualpipev", "interleaved-zb"])
def test_a_split_backward_pass_goes_with_full_and_with_selective_recomputation(schedule):
    layout = Layout(pp=2, vpp=2, dp_replicate=4, schedule=schedule)

    assert refused(problem(), replace(layout, recompute="full")) == []
    assert refused(problem(), replace(layout, recompute="selective")) == []


def test_cpu_processes_have_no_cuda_context_and_no_nccl():
    # 300,764 KiB of VmHWM before the first tensor
    assert TORCH.memory_on("cpu").outside_bytes.value == 300_764 * 1024
    assert TORCH.memory_on("cpu").outside_per_peer_bytes.value == 0
    assert TORCH.memory_on("cuda") is TORCH.memory


def test_the_trial_is_the_layout_on_as_many_processes():
    question = problem(model=tiny_model(), nodes=2, gpus_per_node=4)
    layout = Layout(tp=2, pp=2, dp_replicate=2)

    files = {str(path): text for path, text in TORCH.write(layout, question, PREDICTION).items()}
    trial = from_json(TrialSpec, json.loads(files["trial.json"]))

    assert (trial.layout, trial.model, trial.workload) == (layout, question.model, question.workload)
    assert (trial.nodes, trial.processes_per_node, trial.device) == (2, 4, "cuda")
    assert trial.memory_limit_bytes is None


def test_a_cpu_process_may_hold_what_the_cluster_gives_it():
    question = problem(model=tiny_model(), gpus_per_node=2)
    usable = Figure(value=2.0**30, basis=Basis.MEASURED, source="test", date="2026-12-01")
    gpu = replace(question.cluster.gpu, device="cpu", usable_memory_bytes=usable)
    files = TORCH.write(
        Layout(dp_replicate=2), replace(question, cluster=replace(question.cluster, gpu=gpu)), PREDICTION
    )

    (trial,) = [json.loads(text) for path, text in files.items() if path.name == "trial.json"]
    assert (trial["device"], trial["memory_limit_bytes"]) == ("cpu", 2**30)


def test_what_the_rules_let_through_the_worker_can_run():
    support = pytest.importorskip("autotune.worker.support", reason="the worker's modules need torch")
    question = problem(model=tiny_model(layers=8), gpus_per_node=8, sequence_length=64, global_batch_size=24)
    values = {
        "tp": (1, 2), "pp": (1, 2, 4), "vpp": (1, 2), "cp": (1, 2), "dp_replicate": (1, 2), "dp_shard": (1, 2),
        "zero_stage": (0, 1, 2, 3), "sequence_parallel": (False, True), "micro_batch_size": (1, 3),
        "schedule": TORCH.schedules,
    }  # fmt: skip
    rows = itertools.product(*values.values())
    layouts = [Layout(**dict(zip(values, row, strict=True))) for row in rows]
    table = LayoutTable.of(layouts)
    legal = np.logical_and.reduce([rule.holds(table, question) for rule in (*COMMON_RULES, *TORCH.rules)])

    wrong = {
        layout.key: support.unsupported(layout, question.model, replace(question.workload, precision="fp32"), "cpu")
        for layout, good in zip(layouts, legal, strict=True)
        if good
    }

    assert len(wrong) > 300
    assert {key: reasons for key, reasons in wrong.items() if reasons} == {}
