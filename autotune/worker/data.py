"""Synthetic tokens: every sequence is drawn from the seed, the step and its place in the global batch.

So the global batch is the same whatever the layout, and a rank draws its part alone.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from autotune.spec.model import ModelSpec
from autotune.spec.workload import WorkloadSpec
from autotune.worker.places import Place
from autotune.worker.weights import seed_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """One rank's part of a step: token ids and, for each, the id that follows. [sequences, tokens of the rank]."""

    tokens: Tensor
    labels: Tensor


def local_batch(
    model: ModelSpec, workload: WorkloadSpec, place: Place, positions: Tensor, *, seed: int, step: int
) -> Batch:
    """This rank's sequences of a step, and of each its positions."""
    count = workload.global_batch_size // place.layout.dp
    first = place.dp_rank * count
    rows = torch.stack([_sequence(model, workload, seed, step, row) for row in range(first, first + count)])
    positions = positions.cpu()
    tokens, labels = rows[:, positions], rows[:, positions + 1]
    return Batch(tokens=tokens.to(place.device), labels=labels.to(place.device))


def _sequence(model: ModelSpec, workload: WorkloadSpec, seed: int, step: int, row: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed_of(seed, "tokens", step, row))
    return torch.randint(model.vocab_size, (workload.sequence_length + 1,), generator=generator)
