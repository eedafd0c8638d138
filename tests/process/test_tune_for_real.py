"""The main job with real trials on CPU processes: through the command line, killed, resumed, interrupted."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.running import autotune

pytestmark = pytest.mark.process

TINY = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 256,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "hidden_act": "silu",
}  # fmt: skip

ONE_TRIAL_S = 60
"""More than a trial takes here, with its start, on a busy machine with two cores."""


@pytest.fixture
def question(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    return [
        "tune", "--model", "config.json", "--cluster", "local:2", "--seq-len", "32", "--global-batch-size", "8",
        "--precision", "fp32", "--space", "demo", "--out", "run",
    ]  # fmt: skip


def test_the_winner_of_a_run_with_trials_was_measured_and_its_launch_file_runs(tmp_path, question):
    done = autotune(*question, "--trials", "2", "--json", folder=tmp_path)

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    ran = [layout for layout in answer["layouts"] if layout["step_time_s"]["measured"] is not None]
    assert len(ran) == 2
    assert answer["winner"]["step_time_s"]["measured"] is not None
    assert (tmp_path / "run" / "journal.log").exists()

    script = tmp_path / "run" / "launch" / "run.sh"
    started = subprocess.run(
        [str(script)], env={**os.environ, "PYTHON": sys.executable}, capture_output=True, text=True, check=False
    )
    assert started.returncode == 0, started.stderr
    result = json.loads((script.parent / "result.json").read_text())
    # 2·256·64 + 64 and, a layer: 64·(4+2+2)·16 + 64·64 + 3·64·128 + 2·64
    assert result["parameters"] == 2 * 256 * 64 + 64 + 4 * (64 * 128 + 64 * 64 + 3 * 64 * 128 + 2 * 64)


def test_a_killed_run_continues_and_repeats_no_finished_trial(tmp_path, question):
    command = [sys.executable, "-m", "autotune", *question, "--trials", "2"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    trials = tmp_path / "run" / "trials"
    _wait_for(lambda: len(list(trials.glob("*/outcome.json"))) == 1 and len(list(trials.iterdir())) == 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    first = {path.parent.name: path.stat().st_mtime_ns for path in trials.glob("*/outcome.json")}

    done = autotune(*question, "--trials", "2", "--json", folder=tmp_path)

    assert done.returncode == 0, done.stderr
    ran = [layout["key"] for layout in json.loads(done.stdout)["layouts"] if layout["step_time_s"]["measured"]]
    assert len(ran) == len(set(ran)) == 2
    again = {path.parent.name: path.stat().st_mtime_ns for path in trials.glob("*/outcome.json")}
    assert first.items() <= again.items()


def test_ctrl_c_ends_the_trial_and_says_how_to_go_on(tmp_path, question):
    command = [sys.executable, "-m", "autotune", *question, "--trials", "2"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    _wait_for(lambda: any((tmp_path / "run").glob("trials/*/rank-1.pid")))
    pids = [json.loads(path.read_text())["pid"] for path in (tmp_path / "run").glob("trials/*/rank-*.pid")]

    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=30)[1]

    assert process.returncode == 130
    assert "the same command continues the run" in said
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_trial_counts_only_on_its_target(tmp_path, question):
    elsewhere = [word if word != "local:2" else "1x8xh100" for word in question]

    done = autotune(*elsewhere, "--trials", "1", folder=tmp_path)

    assert done.returncode == 3
    assert "a trial counts only on its target: 1x8xh100 is 1 x 8 x h100, this machine has no GPU" in done.stderr


def test_trials_of_a_mixture_of_experts_exit_3(tmp_path):
    done = autotune(
        "tune", "--model", "qwen3-30b-a3b", "--cluster", "local:2", "--seq-len", "32", "--global-batch-size", "8",
        "--space", "moe", "--trials", "1", "--scale-down", folder=tmp_path,
    )  # fmt: skip

    assert done.returncode == 3
    assert "--trials 0" in done.stderr


def _wait_for(happened, *, limit_s=3 * ONE_TRIAL_S):
    deadline = time.monotonic() + limit_s
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
