"""Rules of PyTorch's own parts, shared by the engines that are made of them. needs: opens the sentence."""

import numpy as np

from autotune.space.pipeline_rules import schedule_at
from autotune.space.rules import Rule
from autotune.spec.layout import BoolColumn, LayoutTable, code_of
from autotune.spec.schedules import SCHEDULES
from autotune.spec.workload import Problem


def fsdp2_shards_gradients(*, needs: str) -> Rule:
    """FSDP2 has no ZeRO-1: what it shards, it shards for gradients as well."""
    return Rule(
        code="fsdp2-shards-gradients",
        axes=("zero_stage",),
        holds=lambda t, p: t.zero_stage != 1,
        reason=lambda t, i, p: (
            f"{needs}: zero_stage={t.zero_stage[i]} shards the optimizer alone, which FSDP2 cannot; give zero_stage "
            f"2 or 3"
        ),
    )


def selective_recompute_needs_one_backward(*, needs: str) -> Rule:
    """A selective checkpoint is rebuilt once, and a split backward pass asks for it twice."""
    split = [code_of("schedule", name) for name, facts in SCHEDULES.items() if facts.splits_backward]

    def holds(table: LayoutTable, problem: Problem) -> BoolColumn:
        selective = np.asarray(table.recompute == code_of("recompute", "selective"), dtype=np.bool_)
        return ~(selective & np.isin(table.schedule, split))

    return Rule(
        code="selective-recompute-needs-one-backward",
        axes=("schedule", "recompute"),
        holds=holds,
        reason=lambda t, i, p: (
            f"{needs}: schedule {schedule_at(t, i)} runs the backward pass in 2 parts, but recompute=selective stands "
            f"only 1; give recompute none or full, or schedule interleaved"
        ),
    )
