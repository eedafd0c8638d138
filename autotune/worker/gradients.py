"""From each rank's own gradients to those of the global batch, and their norm.

FSDP2 sums what it shards by itself, in the backward pass. What is left is done here, once a step.
"""

import math
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from autotune.worker.model import Stage
from autotune.worker.places import Place


def local_tensor(tensor: Tensor) -> Tensor:
    """What this rank holds of a tensor."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def complete_partial_gradients(stages: list[Stage]) -> None:
    """Sum over tp the gradients of parameters that every tp rank has but uses for its own tokens or heads only."""
    for parameter in _with_gradient(stages):
        gradient = parameter.grad
        both = isinstance(parameter, DTensor) and isinstance(gradient, DTensor)
        if both and gradient.placements != parameter.placements:
            parameter.grad = gradient.redistribute(placements=parameter.placements)


def sum_over_copies(stages: list[Stage], place: Place) -> None:
    """Sum the gradients of plain copies over dp and cp, after all micro-batches."""
    copies = place.mesh["replicate"]
    if copies.size() == 1:
        return
    pending = [
        dist.all_reduce(local_tensor(_gradient(parameter)), group=copies.get_group(), async_op=True)
        for parameter in _with_gradient(stages)
    ]
    for work in pending:
        work.wait()


def sum_over_tied(stages: list[Stage], place: Place) -> None:
    """Sum the gradients of the embedding and of the head that is a copy of it, on another stage."""
    if place.layout.pp == 1 or not stages[0].tied:
        return
    embedding = next((stage.embedding for stage in stages if stage.embedding is not None), None)
    head = next((stage.head for stage in stages if stage.head is not None), None)
    if embedding is not None and head is not None:
        own, other = _local_gradient(embedding), _local_gradient(head)
        own += other
        other.copy_(own)
    elif embedding is not None:
        _add_from(place, place.layout.pp - 1, _local_gradient(embedding))
    elif head is not None:
        _add_from(place, 0, _local_gradient(head))


def _add_from(place: Place, pipeline_rank: int, gradient: Tensor) -> None:
    group = place.pipeline
    peer = dist.get_global_rank(group, pipeline_rank)
    received = torch.empty_like(gradient)
    exchange = [dist.P2POp(dist.isend, gradient, peer, group), dist.P2POp(dist.irecv, received, peer, group)]
    for work in dist.batch_isend_irecv(exchange):
        work.wait()
    gradient += received


def own_share_of_squared_norm(stages: list[Stage], place: Place) -> float:
    """This rank's share of the squared gradient norm: the sum over all ranks counts every parameter once.

        share = sum over parameters of |local gradient|² * shards / (tp * cp * dp)

    since each element of a gradient that is cut into `shards` pieces is on (tp * cp * dp) / shards ranks.
    """
    squares = [
        torch.linalg.vector_norm(local_tensor(_gradient(parameter)), dtype=torch.float32).double() ** 2
        * (shards_of(parameter) / place.stage_ranks)
        for parameter in counted_parameters(stages)
        if parameter.grad is not None
    ]
    return torch.stack(squares).sum().item() if squares else 0.0


def counted_parameters(stages: list[Stage]) -> Iterator[nn.Parameter]:
    """The parameters of the stages without the head that is a copy of another stage's embedding."""
    for stage in stages:
        copy = stage.head.weight if stage.tied and stage.head is not None and stage.embedding is None else None
        yield from (parameter for parameter in stage.parameters() if parameter is not copy)


def shards_of(parameter: Tensor) -> int:
    """Pieces into which the ranks of a stage cut a parameter."""
    if not isinstance(parameter, DTensor):
        return 1
    sizes = parameter.device_mesh.shape
    return math.prod(
        size for size, placement in zip(sizes, parameter.placements, strict=True) if not placement.is_replicate()
    )


def _with_gradient(stages: list[Stage]) -> Iterator[nn.Parameter]:
    for stage in stages:
        yield from (parameter for parameter in stage.parameters() if parameter.grad is not None)


def _gradient(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad


def _local_gradient(module: nn.Embedding | nn.Linear) -> Tensor:
    return local_tensor(_gradient(module.weight))
