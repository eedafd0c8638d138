"""The files of `export --to torchrun`, run as they are written."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec

import pytest

from autotune.engines.export import write_launch_files
from autotune.engines.protocol import Prediction
from autotune.spec.figure import Basis, Figure
from autotune.spec.layout import Layout
from autotune.spec.load import trial_result_from_json
from autotune.spec.outcome import Measured
from tests.examples import problem, tiny_model

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(find_spec("torch") is None, reason="the worker needs torch, which is not installed"),
]


def test_the_exported_script_trains_the_layout_on_two_processes(tmp_path):
    question = problem(model=tiny_model(), gpus_per_node=2, sequence_length=64, global_batch_size=4)
    usable = Figure(value=4 * 2.0**30, basis=Basis.MEASURED, source="test", date="2026-12-01")
    gpu = replace(question.cluster.gpu, device="cpu", usable_memory_bytes=usable)
    question = replace(
        question,
        cluster=replace(question.cluster, gpu=gpu),
        workload=replace(question.workload, precision="fp32"),
    )
    prediction = Prediction(step_time_s=1.0, peak_memory_bytes=1.0, limit_bytes=2.0, basis="fitted", command="export")
    for path, text in write_launch_files("torchrun", Layout(tp=2), question, prediction).items():
        (tmp_path / path).write_text(text, encoding="utf-8")

    done = subprocess.run(
        ["bash", str(tmp_path / "run.sh")],
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-2000:]
    got = trial_result_from_json(json.loads((tmp_path / "result.json").read_text(encoding="utf-8")))
    assert isinstance(got, Measured)
    # embedding and head 2·128·32; a layer: query and output 2·32·32, key and value 2·32·16, MLP 3·32·64, norms 2·32;
    # final norm 32
    assert got.parameters == 2 * 128 * 32 + 4 * (2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 64 + 2 * 32) + 32
    assert len(got.ranks) == 2


def test_an_interpreter_without_torch_is_named_before_anything_starts(tmp_path):
    prediction = Prediction(step_time_s=1.0, peak_memory_bytes=1.0, limit_bytes=2.0, basis="fitted", command="export")
    files = write_launch_files("torchrun", Layout(dp_replicate=8), problem(model=tiny_model()), prediction)
    for path, text in files.items():
        (tmp_path / path).write_text(text, encoding="utf-8")

    done = subprocess.run(
        ["bash", str(tmp_path / "run.sh")],
        env={"PATH": os.defpath, "PYTHON": "/bin/false"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 3
    assert done.stderr == "/bin/false has not both torch and autotune: activate their environment, or set PYTHON\n"
