import json
import os
import time

from autotune.trials.lock import RunLock
from tests.cli.running import QUESTION, autotune

CLUSTER_OF_THREE = """
name: three
nodes: 3
gpus_per_node: 4
gpu: a100
host_memory: 1000 GiB
intra_node: nvlink3
inter_node: infiniband-hdr
"""


def test_the_ranking_is_sorted_and_every_combination_is_accounted_for(tmp_path):
    done = autotune("tune", *QUESTION, "--json", "--top", "5", folder=tmp_path)

    answer = json.loads(done.stdout)
    assert done.returncode == 0
    assert [layout["place"] for layout in answer["layouts"]] == [1, 2, 3, 4, 5]
    times = [layout["step_time_s"]["predicted"] for layout in answer["layouts"]]
    assert times == sorted(times)
    assert answer["winner"]["key"] == answer["layouts"][0]["key"]
    space = answer["space"]
    assert space["enumerated"] == space["valid"] + sum(space["invalid"].values())


def test_a_run_folder_holds_inputs_table_reports_and_launch_files(tmp_path):
    answer = json.loads(autotune("tune", *QUESTION, "--json", folder=tmp_path).stdout)

    run = tmp_path / answer["run"]
    assert run.parent == tmp_path / "results"
    names = {path.name for path in run.iterdir()}
    assert {"inputs.json", "table.npz", "report.md", "report.json", "launch"} <= names
    assert {path.name for path in (run / "launch").iterdir()} == {"run.sh", "trial.json"}
    assert not (run / "journal.log").exists()  # without trials there is no study


def test_tune_and_check_give_the_same_numbers_for_the_same_layout(tmp_path):
    winner = json.loads(autotune("tune", *QUESTION, "--json", folder=tmp_path).stdout)["winner"]

    checked = json.loads(autotune("check", winner["key"], *QUESTION, "--json", folder=tmp_path).stdout)

    assert checked["time"] == winner["time"]
    assert checked["memory"] == winner["memory"]


def test_a_run_is_rendered_again_and_exported(tmp_path):
    first = autotune("tune", *QUESTION, "--out", "run", folder=tmp_path)

    again = autotune("report", "run", folder=tmp_path)
    export = autotune("export", "run", "--place", "2", "--to", "megatron-lm", "--out", "launch", folder=tmp_path)

    assert again.stdout == first.stdout
    # Megatron-LM may refuse what torch runs; then every reason is named
    assert export.returncode in {0, 1}
    assert export.stdout or "megatron-lm cannot run" in export.stderr


def test_changed_inputs_on_the_same_folder_are_refused_and_fresh_starts_over(tmp_path):
    autotune("tune", *QUESTION, "--out", "run", folder=tmp_path)
    changed = [*QUESTION[:-1], "128", "--out", "run"]

    refused = autotune("tune", *changed, folder=tmp_path)

    assert refused.returncode == 2
    assert "global_batch_size" in refused.stderr
    assert "was 64 when the run began and is 128 now" in refused.stderr
    assert autotune("tune", *changed, "--fresh", folder=tmp_path).returncode == 0


def test_a_second_process_on_a_live_run_exits_3(tmp_path):
    with RunLock(tmp_path / "run" / "lock"):
        done = autotune("tune", *QUESTION, "--out", "run", folder=tmp_path)

    assert done.returncode == 3
    assert str(os.getpid()) in done.stderr


def test_when_nothing_fits_the_nearest_miss_is_shown_and_the_exit_code_is_1(tmp_path):
    done = autotune("tune", *QUESTION, "--memory-limit", "4 GiB", "--json", folder=tmp_path)

    answer = json.loads(done.stdout)
    assert done.returncode == 1
    assert answer["winner"] is None
    assert answer["space"]["infeasible"] == answer["space"]["valid"] > 0
    assert [layout["verdict"] for layout in answer["layouts"]] == ["does-not-fit"]


def test_a_global_batch_that_nothing_divides_is_answered_with_those_that_work(tmp_path):
    # 8 GPUs with pp = 1 and tp = 1 are 8 data-parallel ranks, and 63 is no multiple of 8
    question = [*QUESTION[:-1], "63", "--tp", "1", "--pp", "1", "--cp", "1"]

    done = autotune("tune", *question, folder=tmp_path)

    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert "global batches near 63 that work: 56 and 64" in said


def test_a_mixture_of_experts_on_three_nodes_of_four_gpus_is_ranked(tmp_path):
    (tmp_path / "three.yaml").write_text(CLUSTER_OF_THREE)

    done = autotune(
        "tune", "--model", "qwen3-30b-a3b", "--cluster", "three.yaml", "--seq-len", "4096", "--global-batch-size", "96",
        "--space", "moe", "--json", folder=tmp_path,
    )  # fmt: skip

    answer = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    for layout in answer["layouts"]:
        axes = {name: axis["value"] for name, axis in layout["layout"].items()}
        assert axes["tp"] * axes["cp"] * axes["pp"] * axes["dp_replicate"] * axes["dp_shard"] == 12


def test_a_baseline_is_kept_and_scored_also_outside_the_space(tmp_path):
    done = autotune(
        "tune", *QUESTION, "--tp", "1", "--baseline", "tp8-mbs1-recompute-full", "--json", "--top", "2", folder=tmp_path
    )

    keys = [layout["key"] for layout in json.loads(done.stdout)["layouts"]]
    assert "tp8-mbs1-recompute-full" in keys
    assert len(keys) == 3


def test_an_engine_without_a_runner_refuses_trials(tmp_path):
    done = autotune("tune", *QUESTION, "--engine", "megatron-lm", "--trials", "1", folder=tmp_path)

    assert done.returncode == 3
    assert "megatron-lm has no runner" in done.stderr


def test_512_gpus_are_answered_in_3_seconds_from_a_cold_start(tmp_path):
    started = time.monotonic()

    done = autotune(
        "tune", "--model", "llama-3-70b", "--cluster", "64x8xh100", "--seq-len", "8192", "--global-batch-size", "1024",
        folder=tmp_path,
    )  # fmt: skip

    assert done.returncode == 0
    # 2 s on an idle machine with two cores; three times the promise, for a busy one
    assert time.monotonic() - started < 9
