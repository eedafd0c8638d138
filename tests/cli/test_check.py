import json
import subprocess
import sys

import pytest

from tests.cli.running import QUESTION, autotune

LAYOUT_KEYS = {
    "key", "layout", "step_time_s", "peak_memory_bytes", "oom_probability", "memory", "time", "verdict", "reasons",
    "basis",
}  # fmt: skip


def test_a_layout_that_fits_exits_0_and_its_parts_add_up(tmp_path):
    done = autotune("check", *QUESTION, "--tp", "2", "--zero-stage", "3", "--json", folder=tmp_path)

    answer = json.loads(done.stdout)
    assert done.returncode == 0
    assert set(answer) == LAYOUT_KEYS | {"schema_version", "tool_version", "model"}
    assert answer["verdict"] == "fits"
    # llama-3-8b: 8,030,261,248 parameters, all of them active
    assert answer["model"] == {"parameters": 8_030_261_248, "active_parameters": 8_030_261_248}
    assert sum(answer["memory"].values()) == pytest.approx(answer["peak_memory_bytes"]["predicted"])
    assert sum(answer["time"].values()) == pytest.approx(answer["step_time_s"]["predicted"])


def test_every_axis_says_where_its_value_came_from(tmp_path):
    done = autotune("check", *QUESTION, "--tp", "2", "--zero-stage", "3", "--json", folder=tmp_path)

    layout = json.loads(done.stdout)["layout"]
    assert layout["tp"] == {"value": 2, "origin": "given"}
    # 8 GPUs / tp 2 leave 4 ranks; with a zero_stage they shard
    assert layout["dp_shard"] == {"value": 4, "origin": "derived"}
    assert layout["cp"] == {"value": 1, "origin": "off"}


def test_an_invalid_layout_names_all_broken_rules_and_exits_1(tmp_path):
    done = autotune("check", *QUESTION, "--tp", "3", "--zero-stage", "1", "--dp-shard", "2", folder=tmp_path)

    assert done.returncode == 1
    for sentence in ("tp=3 does not divide num_attention_heads=32", "intermediate_size=14336", "zero_stage=1"):
        assert sentence in " ".join(done.stdout.split())


def test_a_layout_that_does_not_fit_exits_1(tmp_path):
    # 8.03 B parameters x 16 B are 128 GB on every replica, 79.1 GiB are usable
    done = autotune("check", *QUESTION, "--json", folder=tmp_path)

    assert done.returncode == 1
    assert json.loads(done.stdout)["verdict"] == "does-not-fit"


def test_borderline_exits_0_and_with_strict_1(tmp_path):
    layout = (*QUESTION, "--tp", "2", "--zero-stage", "3")
    peak = json.loads(autotune("check", *layout, "--json", folder=tmp_path).stdout)["peak_memory_bytes"]["predicted"]
    # a limit 4 % above the point and so below the upper bound of 8 %
    limited = (*layout, "--memory-limit", f"{peak * 1.04:.0f} B")

    assert autotune("check", *limited, folder=tmp_path).returncode == 0
    strict = autotune("check", *limited, "--strict", "--json", folder=tmp_path)
    assert strict.returncode == 1
    assert json.loads(strict.stdout)["verdict"] == "borderline"


def test_json_is_plain_in_a_narrow_pipe(tmp_path):
    done = autotune("check", *QUESTION, "--tp", "2", "--json", folder=tmp_path, environment={"COLUMNS": "40"})

    assert json.loads(done.stdout)["schema_version"] == 1
    assert "\x1b" not in done.stdout


def test_all_faults_of_a_bad_command_are_named_at_once(tmp_path):
    done = autotune(
        "check", "--model", "lama-3-8b", "--cluster", "1x8xh10", "--seq-len", "0", "--global-batch-size", "64",
        "--precision", "bf17", "--tp", "two", "--memory-limit", "70 gigs", folder=tmp_path,
    )  # fmt: skip

    assert done.returncode == 2
    for sentence in ("did you mean 'llama-3-8b'", "did you mean 'h100'", "--seq-len: 0", "bf17", "--tp", "70 gigs"):
        assert sentence in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_a_model_file_that_cannot_be_read_is_bad_input(tmp_path, name):
    done = autotune("check", "--model", str(tmp_path / name), *QUESTION[2:], folder=tmp_path)

    assert done.returncode == 2
    assert name.removesuffix(".") in done.stderr


def test_neither_torch_nor_optuna_is_loaded_by_check_and_help():

    probe = (
        "import sys, autotune.cli.main, autotune.workflow.check; "
        "print([name for name in ('torch', 'optuna', 'scipy', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
