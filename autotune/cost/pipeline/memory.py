"""What a rank holds while it runs its operations. Only their order matters, not when they run."""

from autotune.cost.pipeline.costs import StageCosts
from autotune.cost.pipeline.operations import Kind, Operation, Schedule


def resident_bytes(schedule: Schedule, costs: StageCosts, rank: int) -> float:
    """What a rank holds all the time: its stages of every copy of the weights."""
    return sum(
        _of(costs.resident_bytes, stage)
        for placement in schedule.placement
        for stage, holder in enumerate(placement)
        if holder == rank
    )


def live_bytes(schedule: Schedule, costs: StageCosts, rank: int) -> list[tuple[float, float]]:
    """Bytes that a rank holds during and after each of its operations.

    A forward adds what the stage keeps. A recomputed stage keeps its input only and its backward rebuilds the rest.
    The input gradient frees its share, the weight gradient the rest.
    """
    live = resident_bytes(schedule, costs, rank)
    found = []
    for operation in schedule.ranks[rank]:
        added, working, freed = _changes(operation, schedule, costs)
        live += added
        during = live + working
        live -= freed
        found.append((during, live))
    return found


def _changes(operation: Operation, schedule: Schedule, costs: StageCosts) -> tuple[float, float, float]:
    """(added at the start, held on top while it runs, freed at the end)."""
    kind, stage = operation.kind, operation.stage
    recomputed = stage in schedule.recomputed_stages
    activation = costs.activation_bytes[stage] / schedule.parts
    boundary = _of(costs.boundary_bytes, stage) / schedule.parts if recomputed else 0.0
    kept = activation + boundary
    early = costs.freed_at_input_gradient
    if kind is Kind.FORWARD:
        return (boundary if recomputed else activation), 0.0, 0.0
    if kind is Kind.WEIGHT_GRADIENT:
        return 0.0, 0.0, kept * (1 - early)
    rebuilt = activation if recomputed else 0.0
    working = _of(costs.transient_bytes, stage) / schedule.parts
    return rebuilt, working, kept * early if kind is Kind.INPUT_GRADIENT else kept


def _of(column: tuple[float, ...], stage: int) -> float:
    return column[stage] if column else 0.0
