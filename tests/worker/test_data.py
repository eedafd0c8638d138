"""The global batch is the same whatever the layout, and another one at each step."""

from types import SimpleNamespace

import torch

from autotune.spec.layout import Layout
from autotune.spec.workload import WorkloadSpec
from autotune.worker.attention import local_positions
from autotune.worker.data import Batch, local_batch
from tests.examples import tiny_model

WORKLOAD = WorkloadSpec(sequence_length=16, global_batch_size=4)


def batch_of(*, dp: int = 1, dp_rank: int = 0, cp: int = 1, cp_rank: int = 0, step: int = 0, seed: int = 0) -> Batch:
    place = SimpleNamespace(layout=Layout(dp_replicate=dp, cp=cp), device=torch.device("cpu"), dp_rank=dp_rank)
    positions = local_positions(16, degree=cp, rank=cp_rank)
    return local_batch(tiny_model(), WORKLOAD, place, positions, seed=seed, step=step)


def test_data_parallel_ranks_have_the_global_batch_between_them():
    whole, first, second = batch_of(), batch_of(dp=2, dp_rank=0), batch_of(dp=2, dp_rank=1)

    assert whole.tokens.shape == (4, 16)
    assert torch.equal(whole.tokens, torch.cat([first.tokens, second.tokens]))
    assert torch.equal(whole.labels, torch.cat([first.labels, second.labels]))


def test_context_ranks_have_each_sequence_between_them():
    whole, first, second = batch_of(), batch_of(cp=2, cp_rank=0), batch_of(cp=2, cp_rank=1)

    # pieces 0 and 3 of 4 tokens each, and pieces 1 and 2
    assert torch.equal(first.tokens, whole.tokens[:, [0, 1, 2, 3, 12, 13, 14, 15]])
    assert torch.equal(second.labels, whole.labels[:, 4:12])


def test_a_label_is_the_token_that_follows():
    batch = batch_of()

    assert torch.equal(batch.labels[:, :-1], batch.tokens[:, 1:])


def test_steps_and_seeds_have_batches_of_their_own():
    assert not torch.equal(batch_of(step=0).tokens, batch_of(step=1).tokens)
    assert not torch.equal(batch_of(seed=0).tokens, batch_of(seed=1).tokens)
