"""The layouts whose breakdowns are kept as golden files, and how a breakdown is written down."""

import json
from pathlib import Path

from autotune.cost.profile import MemoryProfile
from autotune.spec.layout import Layout
from autotune.spec.workload import Problem
from tests.cost.architectures import DEEPSEEK_V3, LLAMA_3_405B, LLAMA_32_1B, MIXTRAL_8X7B
from tests.cost.profiles import estimate_of, figure, master_copy_profile, only_copy_profile
from tests.examples import llama_3_8b, llama_3_70b, problem, qwen3_30b_a3b

DATA = Path(__file__).parent / "data" / "breakdowns.json"

Breakdown = dict[str, dict[str, float]]

_8B = problem(model=llama_3_8b(), sequence_length=8192)
_70B = problem(model=llama_3_70b(), nodes=64, sequence_length=8192, global_batch_size=1024)
_405B = problem(model=LLAMA_3_405B, nodes=128, sequence_length=8192, global_batch_size=2048)
_30B = problem(model=qwen3_30b_a3b(), nodes=2, global_batch_size=512)
_V3 = problem(model=DEEPSEEK_V3, nodes=128, global_batch_size=2048)

CASES: dict[str, tuple[Problem, str, MemoryProfile]] = {
    "llama-3-8b fully sharded": (_8B, "shard8-z3-mbs1-recompute-selective", only_copy_profile()),
    "llama-3-8b replicated, two tensor ranks": (_8B, "tp2-rep4-sp-mbs2-recompute-full", master_copy_profile()),
    "llama-3.2-1b in a pipeline": (problem(model=LLAMA_32_1B), "pp4-rep2-mbs1-gpipe", master_copy_profile()),
    "llama-3-70b interleaved": (_70B, "tp8-pp4-vpp5-shard16-z1-sp-mbs1-interleaved", master_copy_profile()),
    "llama-3-70b zero bubble": (_70B, "tp8-pp8-vpp2-shard8-z1-sp-mbs1-zb-v", master_copy_profile()),
    "llama-3-70b long context": (_70B, "tp8-shard16-cp4-z3-sp-mbs4-recompute-full", only_copy_profile()),
    "llama-3-405b uneven": (_405B, "tp8-pp8-vpp4-shard8-cp2-z1-sp-mbs1-interleaved", master_copy_profile()),
    "qwen3-30b-a3b over experts": (_30B, "pp2-vpp12-shard8-ep8-z1-mbs2-interleaved", master_copy_profile()),
    "mixtral-8x7b with tensor ranks in experts": (
        problem(model=MIXTRAL_8X7B, nodes=4),
        "tp4-pp2-shard4-ep2-etp4-z1-sp-mbs1-recompute-selective",
        master_copy_profile(allocator_slack=figure(0.05)),
    ),
    "deepseek-v3 held twice": (_V3, "pp16-shard64-ep64-z1-mbs1-dualpipe", master_copy_profile()),
}


def breakdown(name: str) -> Breakdown:
    """Every part of one case."""
    question, key, profile = CASES[name]
    got = estimate_of([Layout.from_key(key)], question, profile)
    return {
        "memory_bytes": {part: float(column[0]) for part, column in got.memory.parts.items()},
        "time_s": {part: float(column[0]) for part, column in got.time.parts.items()},
        "other": {"fullest_stage": float(got.fullest_stage[0]), "host_bytes": float(got.host_bytes[0])},
    }


def stored() -> dict[str, Breakdown]:
    """What the golden file says."""
    read: dict[str, Breakdown] = json.loads(DATA.read_text(encoding="utf-8"))
    return read


def rendered() -> str:
    """The golden file as today's code would write it."""
    return json.dumps({name: breakdown(name) for name in CASES}, indent=2) + "\n"
