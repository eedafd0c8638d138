"""Whatever the layout, a step computes what a single process computes: the same losses and the same gradient norms.

With SGD at a high rate and fp32, so that a gradient that is wrong shows in the next loss; with at least two
micro-batches on each rank.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from tests.process import worker_jobs
from tests.process.worker_jobs import Curve, Job

pytestmark = pytest.mark.process

RELATIVE = 1e-4

TIED = {"tied_embeddings": True}
RICH = {
    "norms_per_layer": 4, "qk_norm": True, "embedding_norm": True, "qkv_bias": True, "attention_output_bias": True,
    "mlp_bias": True, "head_bias": True, "num_hidden_layers": 5,
}  # fmt: skip
GPT = {
    "norm": "layernorm", "norm_bias": True, "gated_mlp": False, "activation": "gelu", "learned_positions": 16,
    "qkv_bias": True, "attention_output_bias": True, "mlp_bias": True, "tied_embeddings": True, "vocab_size": 65,
}  # fmt: skip
MODELS: dict[str, dict[str, object]] = {"plain": {}, "tied": TIED, "rich": RICH, "gpt": GPT}

ON_TWO = (
    ("plain", "rep2-mbs1"),
    ("plain", "shard2-z2-mbs1"),
    ("plain", "shard2-z3-mbs1"),
    ("plain", "shard2-z3-mbs2-recompute-full"),
    ("plain", "shard2-z3-mbs2-recompute-selective"),
    ("plain", "cp2-mbs2"),
    ("plain", "tp2-mbs4"),
    ("plain", "tp2-sp-mbs4"),
    ("plain", "pp2-mbs2-gpipe"),
    ("plain", "pp2-mbs2"),
    ("plain", "pp2-vpp2-mbs2-interleaved"),
    ("plain", "pp2-vpp2-mbs2-breadth-first"),
    ("plain", "pp2-vpp2-mbs2-interleaved-zb"),
    ("plain", "pp2-vpp2-mbs2-zb-v"),
    ("plain", "pp2-vpp2-mbs2-dualpipev"),
    ("plain", "pp2-vpp2-mbs2-zb-v-recompute-full"),
    ("plain", "pp2-vpp2-mbs2-zb-v-recompute-selective"),
    ("tied", "pp2-mbs2"),
    ("tied", "pp2-vpp2-mbs2-zb-v"),
    ("tied", "shard2-z3-mbs2"),
    ("rich", "tp2-sp-mbs4"),
    ("rich", "pp2-vpp2-mbs2-interleaved"),
    ("gpt", "tp2-mbs4"),
)
ON_FOUR = (
    ("plain", "rep2-shard2-z2-mbs1"),
    ("plain", "rep2-shard2-z3-mbs1"),
    ("plain", "rep2-cp2-mbs2"),
    ("plain", "pp2-shard2-z3-mbs1"),
    ("plain", "pp2-vpp2-shard2-z3-mbs1-zb-v"),
    ("tied", "tp2-pp2-vpp2-sp-mbs2-zb-v"),
    ("plain", "tp2-shard2-z3-sp-mbs2"),
)
ALONE = ("mbs1", "mbs2", "mbs8-recompute-full", "mbs4-recompute-selective")

FAULTS = {
    "gradients of copies not summed": ("plain", "rep2-mbs1"),
    "sharded gradients averaged": ("plain", "shard2-z2-mbs1"),
    "gradients of tied copies not summed": ("tied", "pp2-mbs2"),
    "partial gradients not completed": ("rich", "tp2-sp-mbs4"),
    "gradients of the last micro-batch alone": ("plain", "rep2-mbs1"),
    "gradients scaled by 1.01": ("plain", "rep2-mbs1"),
}


def named(model: str, key: str, fault: str = "", **workload: object) -> Job:
    name = f"{model} {key} {fault} {workload}"
    return Job(name=name, key=key, model=MODELS[model], workload=workload, fault=fault)


HALF = named("plain", "rep2-mbs1", precision="bf16")


@pytest.fixture(scope="module")
def one_process() -> Iterator[None]:
    """A process group of this process alone, with one thread: more wait for each other longer than they compute."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        yield
        dist.destroy_process_group()
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def single(one_process: None) -> dict[str, Curve]:
    """What one process computes, by model."""
    return {model: worker_jobs.curve(named(model, "mbs4")) for model in MODELS}


@pytest.fixture(scope="module")
def on_two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Curve]:
    faulty = [named(*case, fault=fault) for fault, case in FAULTS.items()]
    return run(tmp_path_factory.mktemp("two"), [*(named(*case) for case in ON_TWO), *faulty, HALF], processes=2)


@pytest.fixture(scope="module")
def on_four(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Curve]:
    return run(tmp_path_factory.mktemp("four"), [named(*case) for case in ON_FOUR], processes=4)


def run(folder: Path, jobs: list[Job], *, processes: int) -> dict[str, Curve]:
    asked, answer = folder / "jobs.json", folder / "results.json"
    asked.write_text(worker_jobs.as_json(jobs))
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes),
        "--max-restarts", "0", "-m", worker_jobs.__name__, str(asked), str(answer),
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    root = Path(__file__).parents[2]
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return worker_jobs.read_curves(answer)


def approximately(curve: Curve) -> list[object]:
    return [pytest.approx(step, rel=RELATIVE) for step in curve]


@pytest.mark.parametrize("key", ALONE)
def test_micro_batches_and_recomputation_change_nothing(key, single):
    assert worker_jobs.curve(named("plain", key)) == approximately(single["plain"])


@pytest.mark.parametrize(("model", "key"), ON_TWO)
def test_two_processes_compute_what_one_computes(model, key, single, on_two):
    assert on_two[named(model, key).name] == approximately(single[model])


@pytest.mark.parametrize(("model", "key"), ON_FOUR)
def test_four_processes_compute_what_one_computes(model, key, single, on_four):
    assert on_four[named(model, key).name] == approximately(single[model])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(fault, single, on_two):
    model, key = FAULTS[fault]

    assert on_two[named(model, key, fault=fault).name] != approximately(single[model])


def test_a_wrong_scale_of_the_gradients_moves_the_next_loss_and_not_only_the_norm(single, on_two):
    fault = "sharded gradients averaged"
    wrong = on_two[named(*FAULTS[fault], fault=fault).name]

    losses = [loss for loss, _ in wrong]
    right = [loss for loss, _ in single["plain"]]
    assert losses[0] == pytest.approx(right[0], rel=RELATIVE)  # before the first gradient is used
    assert abs(losses[1] - right[1]) > 20 * RELATIVE * right[1]


def test_half_precision_is_near(single, on_two):
    # bf16 has 8 bits: single products are good to 1/256
    assert on_two[HALF.name] == [pytest.approx(step, rel=0.02) for step in single["plain"]]
    assert on_two[HALF.name] != approximately(single["plain"])


def test_weights_change_at_each_step(single):
    for curve in single.values():
        losses = [loss for loss, _ in curve]
        assert len({round(loss, 4) for loss in losses}) == len(losses)
