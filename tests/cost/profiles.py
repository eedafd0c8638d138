"""Memory profiles with round figures, and short ways to estimate a few layouts."""

from autotune.cost.estimate import estimate
from autotune.cost.estimates import Estimates
from autotune.cost.profile import Factors, MemoryProfile
from autotune.spec.figure import Basis, Figure
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.workload import Problem


def figure(value: float) -> Figure:
    return Figure(value=value, basis=Basis.DATASHEET, source="round figure for tests", date="2025-01-01")


def master_copy_profile(**changes: object) -> MemoryProfile:
    """An engine with bf16 weights and a sharded fp32 master copy, fused activation function."""
    settings: dict[str, object] = {
        "master_weights": True,
        "fused_activation_function": True,
        "logits_bytes_per_element": figure(8),
        "gradient_bucket_bytes": figure(100e6),
        "outside_bytes": figure(2e9),
        "outside_per_peer_bytes": figure(1e7),
        "allocator_slack": figure(0.0),
        "upper_bound": figure(1.08),
    }
    return MemoryProfile(**(settings | changes))  # type: ignore[arg-type]


def only_copy_profile(**changes: object) -> MemoryProfile:
    """An engine whose only weights are a sharded fp32 copy, cast when gathered."""
    settings: dict[str, object] = {
        "master_weights": False,
        "weight_bytes_per_param": 4.0,
        "fused_activation_function": False,
        "vocab_multiple": 1,
    }
    return master_copy_profile(**(settings | changes))


def estimate_of(
    layouts: list[Layout], problem: Problem, profile: MemoryProfile | None = None, factors: Factors | None = None
) -> Estimates:
    return estimate(LayoutTable.of(layouts), problem, profile or master_copy_profile(), factors or Factors())
