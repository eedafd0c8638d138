"""`python -m autotune.worker` as it is started for real: what it leaves in the trial's folder, and how it ends."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.cost.parameters import total_parameters
from autotune.spec.layout import Layout
from autotune.spec.load import from_json, to_json
from autotune.spec.outcome import Measured, TrialSpec
from autotune.spec.probe import MachineProbe
from autotune.spec.workload import WorkloadSpec
from tests.examples import tiny_model

pytestmark = pytest.mark.process

MODEL = replace(tiny_model(), hidden_size=128, intermediate_size=512, vocab_size=1024)
PATIENCE_S = 120
MIB = 2**20


def trial(key: str, **different: object) -> TrialSpec:
    layout = Layout.from_key(key)
    workload = WorkloadSpec(sequence_length=64, global_batch_size=8, precision="fp32", optimizer="adamw")
    spec = TrialSpec(
        layout=layout, model=MODEL, workload=workload, device="cpu", processes_per_node=layout.gpus,
        max_warmup_steps=3,
    )  # fmt: skip
    return replace(spec, **different)


def start(folder: Path, spec: TrialSpec) -> subprocess.CompletedProcess[str]:
    """Under torchrun."""
    (folder / "trial.json").write_text(json.dumps(to_json(spec)))
    launcher = [
        "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(spec.world_size), "--max-restarts", "0",
    ]  # fmt: skip
    return python(*launcher, "-m", "autotune.worker", "trial", "--folder", str(folder))


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env={**os.environ, **environment}, capture_output=True, text=True,
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip


def failure(folder: Path, rank: int) -> dict[str, str]:
    return json.loads((folder / f"rank-{rank}.json").read_text())


def test_a_trial_leaves_a_result_with_steps_memory_and_parameters(tmp_path):
    spec = trial("shard2-z3-mbs2")

    done = start(tmp_path, spec)

    assert done.returncode == 0, done.stderr
    got = from_json(Measured, json.loads((tmp_path / "result.json").read_bytes()))
    assert len(got.step_times_s) == spec.measured_steps
    assert spec.min_warmup_steps <= len(got.warmup_step_times_s) <= spec.max_warmup_steps
    assert len(got.losses) == len(got.gradient_norms) == len(got.warmup_step_times_s) + spec.measured_steps
    assert got.parameters == total_parameters(MODEL)
    assert [report.rank for report in got.ranks] == [0, 1]
    assert sum(report.parameters for report in got.ranks) == got.parameters  # each has its shards, and no copies
    for report in got.ranks:
        # weight, gradient and two states of AdamW in fp32
        assert report.tensor_bytes > 16 * report.parameters
        assert report.resident_bytes is None or report.resident_bytes > 16 * report.parameters
    assert got.fingerprint["backend"] == "gloo"
    assert {path.name for path in tmp_path.glob("rank-*")} == {
        f"rank-{r}.{k}" for r in (0, 1) for k in ("pid", "phase")
    }


def test_the_rank_that_has_too_little_memory_says_so_and_nobody_leaves_a_result(tmp_path):
    # Weights, gradients and states of a stage are 16 B · 0.6 M = 9 MiB, and the logits of the 8 sequences of the one
    # micro-batch 8·64·1024·4 B = 2 MiB, of which the loss makes several.
    spec = trial("pp2-mbs8-gpipe", memory_limit_bytes=10 * MIB)

    done = start(tmp_path, spec)

    assert done.returncode != 0
    assert not (tmp_path / "result.json").exists()
    failures = [json.loads(path.read_text()) for path in tmp_path.glob("rank-*.json")]
    assert "out-of-memory" in {each["status"] for each in failures}, failures
    first = next(each for each in failures if each["status"] == "out-of-memory")
    assert first["message"].startswith("tried to allocate ")
    assert first["message"].endswith(f"limit {10 * MIB} bytes")
    assert first["phase"] in ("model", "forward", "loss", "backward", "gradients", "optimizer")


def test_what_the_worker_cannot_do_is_invalid_with_every_reason(tmp_path):
    spec = trial("shard2-z1-mbs2", workload=WorkloadSpec(sequence_length=64, global_batch_size=8, precision="fp8"))
    (tmp_path / "trial.json").write_text(json.dumps(to_json(spec)))

    done = python("-m", "autotune.worker", "trial", "--folder", str(tmp_path), RANK="1", WORLD_SIZE="2")

    assert done.returncode == 1
    assert failure(tmp_path, 1)["status"] == "invalid"
    assert "zero_stage=1" in failure(tmp_path, 1)["message"]
    assert "fp8" in failure(tmp_path, 1)["message"]


def test_a_trial_that_cannot_be_read_is_a_crash_with_a_name(tmp_path):
    (tmp_path / "trial.json").write_text('{"layout": ')

    done = python("-m", "autotune.worker", "trial", "--folder", str(tmp_path), RANK="0")

    assert done.returncode == 1
    assert failure(tmp_path, 0)["status"] == "crash"
    assert failure(tmp_path, 0)["phase"] == "init"
    assert "JSONDecodeError" in failure(tmp_path, 0)["message"]
    assert (tmp_path / "rank-0.pid").exists()


def test_a_probe_measures_this_machine(tmp_path):
    out = tmp_path / "probe.json"

    done = python("-m", "autotune.worker", "probe", "--out", str(out), "--gpus", "2")

    assert done.returncode == 0, done.stderr
    got = from_json(MachineProbe, json.loads(out.read_bytes()))
    assert got.gpus == 2
    assert 0 < got.usable_memory_bytes <= got.memory_bytes <= got.host_memory_bytes
    assert set(got.gemm_flops_per_s) == {"fp32", "bf16"}
    assert min(got.gemm_flops_per_s.values()) > 0
    assert min(got.memory_bandwidth_bytes_per_s, got.link_bandwidth_bytes_per_s) > 10**6
    assert 0 < got.kernel_launch_s < got.link_latency_s < 1
