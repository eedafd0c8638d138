"""From a layout to files, or to every reason why not."""

import re
from dataclasses import replace

import pytest

from autotune.engines.export import launchable, why_not_launched, write_launch_files
from autotune.engines.registry import ENGINES, EXPORTERS
from autotune.errors import InputError, NoAnswerError
from autotune.spec.layout import Layout
from autotune.testing import HOSTILE_NAME
from tests.engines.test_megatron_lm import PREDICTION
from tests.examples import h100_cluster, llama_3_8b, problem, qwen3_30b_a3b


def test_engines_and_targets_have_the_names_that_users_type():
    assert list(ENGINES) == ["torch", "megatron-lm", "torchtitan"]
    assert list(EXPORTERS) == ["megatron-lm", "torchtitan", "torchrun"]
    assert [name for name, engine in ENGINES.items() if engine.runs_trials] == ["torch"]


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("megatron-lm", ["launch.sh"]),
        ("torchtitan", ["launch.sh", "recipe.py"]),
        ("torchrun", ["run.sh", "trial.json"]),
    ],
)
def test_each_target_has_its_files(target, names):
    files = write_launch_files(target, Layout(tp=2, dp_replicate=4), problem(), PREDICTION)

    assert [str(path) for path in files] == names


def test_all_reasons_are_given_at_once():
    # 29 layers on 4 ranks (no 29, 30 or 31 is a multiple of 4), experts with tp 2 and no sequence parallelism
    question = problem(model=replace(qwen3_30b_a3b(), num_hidden_layers=29, norms_per_layer=4))

    with pytest.raises(NoAnswerError) as raised:
        write_launch_files("megatron-lm", Layout(tp=2, pp=4), question, PREDICTION)

    text = str(raised.value)
    assert text.startswith("megatron-lm cannot run tp2-pp4-mbs1:\n- ")
    assert [word for word in ("29 layers", "sequence_parallel", "four norms in a layer") if word not in text] == []
    assert text.count("\n- ") == 3


def test_a_schedule_that_no_engine_runs_is_not_launchable():
    layout = Layout(pp=2, vpp=2, dp_replicate=4, schedule="chronos")

    assert not launchable("chronos")
    assert launchable("zb-v")
    codes = [reason.code for reason in why_not_launched(ENGINES["torch"], layout, problem())]
    assert codes == ["not-launchable", "schedule-of-engine"]


def test_an_unknown_target_is_an_input_error_with_the_nearest_name():
    with pytest.raises(InputError, match=re.escape("did you mean 'megatron-lm'?")):
        write_launch_files("megatron", Layout(), problem(), PREDICTION)


@pytest.mark.parametrize("target", EXPORTERS)
def test_the_header_says_versions_prediction_basis_and_command(target):
    files = write_launch_files(target, Layout(tp=2, dp_replicate=4), problem(), PREDICTION)

    text = next(iter(files.values()))
    assert "# llama-3-8b on 1x8xh100: layout tp2-rep4-mbs1\n" in text
    assert f"# engine: {EXPORTERS[target].name} {EXPORTERS[target].versions}\n" in text
    assert "# predicted: step 1.50 s, peak memory 60.0 GiB of 79.0 GiB a GPU (basis: datasheet)\n" in text
    # 64 sequences = micro-batches of 1 · 16 · 4 data-parallel ranks
    assert "# batch: 64 sequences of 4096 tokens = micro-batches of 1 · 16 a step · dp 4\n" in text
    assert "# made by: autotune export run\n" in text


@pytest.mark.parametrize("target", EXPORTERS)
def test_a_hostile_name_stays_inside_its_comment(target):
    question = problem(model=replace(llama_3_8b(), name=HOSTILE_NAME))

    for path, text in write_launch_files(target, Layout(dp_replicate=8), question, PREDICTION).items():
        if path.suffix != ".json":
            assert all(line.startswith("# ") for line in text.splitlines() if "marker" in line)
            assert "49" not in "".join(line for line in text.splitlines() if "marker" in line)


def test_three_nodes_of_four_gpus_are_three_tasks_of_four():
    question = problem(nodes=3, gpus_per_node=4, global_batch_size=60)

    (text,) = write_launch_files("megatron-lm", Layout(tp=4, dp_replicate=3), question, PREDICTION).values()

    assert "#SBATCH --nodes=3\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=4\n" in text
    assert "--nnodes 3 --nproc-per-node 4" in text


def test_a_layout_that_leaves_gpus_idle_takes_the_fewest_equal_nodes():
    # 12 GPUs on nodes of 8: two nodes of 6
    question = problem(nodes=2, global_batch_size=60)

    (text,) = write_launch_files("megatron-lm", Layout(tp=4, dp_replicate=3), question, PREDICTION).values()

    assert "--nnodes 2 --nproc-per-node 6" in text


def test_nodes_of_one_nvlink_domain_are_asked_for_together():
    # NVL72: 18 nodes of 4 GPUs share a domain
    cluster = replace(h100_cluster(36, 4), nvlink_domain_gpus=72)
    question = replace(problem(global_batch_size=144), cluster=cluster)

    (text,) = write_launch_files("megatron-lm", Layout(tp=4, dp_replicate=36), question, PREDICTION).values()

    assert "#SBATCH --segment=18 " in text
