"""The exported files whose text is kept: one question and layout for each, and where they are."""

from collections.abc import Iterator
from pathlib import Path

from autotune.engines.export import write_launch_files
from autotune.engines.protocol import Prediction
from autotune.spec.layout import Layout
from autotune.spec.workload import Problem
from tests.examples import GIB, llama_3_8b, llama_3_70b, problem, qwen3_30b_a3b, tiny_model

FOLDER = Path(__file__).parent / "data" / "exports"

PREDICTION = Prediction(
    step_time_s=12.5, peak_memory_bytes=60 * GIB, limit_bytes=79 * GIB, basis="datasheet", command="autotune export run"
)

LARGE = problem(model=llama_3_70b(), nodes=64, sequence_length=8192, global_batch_size=1024)

CASES: dict[str, tuple[str, Layout, Problem]] = {
    "megatron-lm-llama-3-70b-interleaved": (
        "megatron-lm",
        Layout(
            tp=8, pp=4, vpp=5, dp_shard=16, zero_stage=1, schedule="interleaved", sequence_parallel=True,
            recompute="selective",
        ),
        LARGE,
    ),
    "megatron-lm-llama-3-8b-fsdp": (
        "megatron-lm",
        Layout(tp=2, dp_replicate=2, dp_shard=2, zero_stage=3, recompute="full"),
        problem(model=llama_3_8b()),
    ),
    "megatron-lm-qwen3-30b-a3b-experts": (
        "megatron-lm",
        Layout(tp=2, ep=8, dp_shard=8, zero_stage=1, sequence_parallel=True),
        problem(model=qwen3_30b_a3b(), nodes=2),
    ),
    "torchtitan-llama-3-70b-interleaved": (
        "torchtitan",
        Layout(
            tp=8, pp=4, vpp=5, dp_shard=16, zero_stage=2, schedule="interleaved", sequence_parallel=True,
            recompute="full",
        ),
        LARGE,
    ),
    "torchtitan-qwen3-30b-a3b-experts": (
        "torchtitan",
        Layout(ep=8, dp_shard=8, zero_stage=3, recompute="selective"),
        problem(model=qwen3_30b_a3b()),
    ),
    "torchtitan-a-shape-of-its-own": (
        "torchtitan", Layout(tp=2, dp_shard=4, zero_stage=3), problem(model=tiny_model()),
    ),
    "torchrun-one-node": ("torchrun", Layout(tp=2, dp_replicate=4), problem(model=tiny_model())),
    "torchrun-two-nodes": (
        "torchrun",
        Layout(pp=2, vpp=2, dp_shard=8, zero_stage=3, schedule="zb-v"),
        problem(model=tiny_model(), nodes=2),
    ),
}  # fmt: skip


def exported() -> Iterator[tuple[Path, str]]:
    """Every file, by its place below FOLDER."""
    for name, (target, layout, question) in CASES.items():
        for path, text in write_launch_files(target, layout, question, PREDICTION).items():
            yield Path(name) / path, text


def rewrite() -> None:
    """Replace what is kept."""
    for path, text in exported():
        (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    rewrite()
