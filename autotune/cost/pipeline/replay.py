"""Replays a schedule operation by operation, each as soon as its rank is free and what it needs has arrived."""

from autotune.cost.pipeline.costs import StageCosts, seconds_by_kind
from autotune.cost.pipeline.operations import Schedule
from autotune.cost.pipeline.plan import Plan, planned
from autotune.cost.pipeline.timeline import Timeline


def replay(schedule: Schedule | Plan, costs: StageCosts) -> Timeline:
    """When each operation starts and ends. The order on a rank is kept, whatever the stages cost.

    Where one schedule is replayed with many costs, a plan saves most of the time. What a fused pair sends leaves at
    the end of both.
    """
    plan = schedule if isinstance(schedule, Plan) else planned(schedule)
    table = plan.schedule
    seconds = seconds_by_kind(costs, parts=table.parts, recomputed_stages=table.recomputed_stages)
    transfer_s = costs.transfer_s
    step_end_s: list[float] = []
    starts: list[list[float]] = [[] for _ in table.ranks]
    ends: list[list[float]] = [[] for _ in table.ranks]
    free_s = [0.0] * table.pp
    for rank, operations, remote in plan.steps:
        now_s = free_s[rank]
        for position in remote:
            arrival_s = step_end_s[position] + transfer_s
            if arrival_s > now_s:
                now_s = arrival_s
        for operation in operations:
            starts[rank].append(now_s)
            now_s += seconds[operation.kind][operation.stage]
            ends[rank].append(now_s)
        if len(operations) > 1:
            now_s = ends[rank][-1] = max(now_s - costs.hidden_in_pair_s, starts[rank][-1])
        free_s[rank] = now_s
        step_end_s.append(now_s)
    return Timeline(
        schedule=table, costs=costs, start_s=tuple(map(tuple, starts)), end_s=tuple(map(tuple, ends))
    )  # fmt: skip
