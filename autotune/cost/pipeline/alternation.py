"""The pattern under most schedules: some forwards to warm up, then one forward and one backward in turn."""

from collections.abc import Sequence

from autotune.cost.pipeline.operations import Kind, Operation


def alternate(forwards: Sequence[Operation], backwards: Sequence[Operation], *, warm_up: int) -> tuple[Operation, ...]:
    """`warm_up` forwards, then forward and backward in turn, then the backwards that are left."""
    first = min(warm_up, len(forwards))
    steady = len(forwards) - first
    pairs = zip(forwards[first:], backwards[:steady], strict=True)
    return (*forwards[:first], *(operation for pair in pairs for operation in pair), *backwards[steady:])


def alternate_with_late_weight_gradients(
    forwards: Sequence[Operation], input_gradients: Sequence[Operation], *, warm_up: int, late: int
) -> tuple[Operation, ...]:
    """The same with the backward in two: after an input gradient comes the weight gradient of the one `late` before."""
    weight_gradients = [operation._replace(kind=Kind.WEIGHT_GRADIENT) for operation in input_gradients]
    order: list[Operation] = []
    done = 0
    for operation in alternate(forwards, input_gradients, warm_up=warm_up):
        order.append(operation)
        if operation.kind is Kind.INPUT_GRADIENT:
            if done >= late:
                order.append(weight_gradients[done - late])
            done += 1
    return (*order, *weight_gradients[max(len(weight_gradients) - late, 0) :])
