"""The tensors that a process holds are counted to the byte."""

import torch

from autotune.worker.memory import TensorPeak, status_bytes

FLOATS = 1_000
FLOAT_BYTES = 4


def growth_of(tracker: TensorPeak, before_bytes: int) -> int:
    return tracker.peak_bytes - before_bytes


def test_the_peak_is_what_was_held_at_once():
    with TensorPeak() as tracker:
        before = tracker.peak_bytes
        first = torch.zeros(FLOATS)
        second = first + 1
        del first
        third = second + 1

    # first and second, then second and third: two at a time
    assert growth_of(tracker, before) == 2 * FLOATS * FLOAT_BYTES
    assert third.numel() == FLOATS


def test_a_view_holds_nothing_of_its_own():
    with TensorPeak() as tracker:
        before = tracker.peak_bytes
        whole = torch.zeros(FLOATS)
        views = [whole[10:], whole.view(10, 100), whole.t()]

    assert growth_of(tracker, before) == FLOATS * FLOAT_BYTES
    assert len(views) == 3


def test_what_autograd_keeps_for_the_backward_pass_is_held():
    weight = torch.ones(FLOATS, requires_grad=True)
    with TensorPeak() as tracker:
        before = tracker.peak_bytes
        result = (weight.exp().exp()).sum()  # the backward of exp needs its result: two tensors

    # and the sum of one float
    assert growth_of(tracker, before) == (2 * FLOATS + 1) * FLOAT_BYTES
    assert result.requires_grad


def test_gradients_of_the_backward_pass_are_held():
    weight = torch.ones(FLOATS, requires_grad=True)
    with TensorPeak() as tracker:
        before = tracker.peak_bytes
        weight.sum().backward()

    # the loss and its gradient (one float each), and a gradient that is one expanded float until it is kept whole
    assert FLOATS * FLOAT_BYTES < growth_of(tracker, before) <= (FLOATS + 3) * FLOAT_BYTES


def test_what_was_there_before_is_counted():
    there = torch.zeros(100 * FLOATS)

    with TensorPeak() as tracker:
        pass

    assert tracker.peak_bytes >= there.numel() * FLOAT_BYTES


def test_a_storage_that_is_resized_is_counted_at_its_new_size():
    there = torch.zeros(FLOATS)
    with TensorPeak() as tracker:
        before = tracker.peak_bytes
        there.untyped_storage().resize_(0)
        there.untyped_storage().resize_(3 * FLOATS * FLOAT_BYTES)

    assert growth_of(tracker, before) == 2 * FLOATS * FLOAT_BYTES


def test_status_bytes_reads_what_is_resident():
    before = status_bytes("VmRSS")
    held = torch.ones(64 * 2**20, dtype=torch.uint8)  # too large for glibc to take from memory that is resident already

    assert status_bytes("VmRSS") - before > 0.9 * held.numel()
