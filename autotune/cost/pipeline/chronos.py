"""A Chronos-style schedule, reconstructed from the idea of Lin et al. 2025 (2503.03182): activations of deep chunks
live shortly.

A block is one micro-batch through all chunks and back with as little waiting as possible. A block is issued every
v(F + BW) chunk times, so that each rank runs one forward and one backward of every chunk in between. Deep chunks are
freed soon, chunk 0 lives longest: p(v + 1)/(2v) micro-batches are in flight in the limit, instead of the p of 1F1B.
The shallow chunks, which live longest, may be recomputed.
"""

from autotune.cost.pipeline.chronos_block import block_of
from autotune.cost.pipeline.operations import Kind, Operation, Schedule, looped
from autotune.cost.pipeline.shape import Shape


def chronos(shape: Shape) -> Schedule:
    """Blocks repeated every period; the replay moves their ends together."""
    block = block_of(pp=shape.pp, chunks=shape.chunks, recomputed=shape.recomputed_chunks)
    timed: list[list[tuple[int, Operation]]] = [[] for _ in range(shape.pp)]
    for step, start in block.starts.items():
        kind = Kind.FORWARD if step.forward else Kind.BACKWARD
        stage = step.chunk * shape.pp + step.rank
        timed[step.rank] += [
            (start + block.period * micro_batch, Operation(kind, stage, micro_batch))
            for micro_batch in range(shape.micro_batches)
        ]
    return Schedule(
        name="chronos",
        ranks=tuple(tuple(operation for _, operation in sorted(rank)) for rank in timed),
        placement=(looped(shape.pp, shape.chunks),),
        micro_batches=shape.micro_batches,
        recomputed_stages=frozenset(range(shape.recomputed_chunks * shape.pp)),
    )
