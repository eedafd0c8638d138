"""The size that a schedule is built for."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """pp: ranks; micro_batches: of all replicas; chunks: stages of one replica on a rank; parts: slices of a sequence.

    recomputed_chunks: how many of the shallowest are recomputed.
    """

    pp: int
    micro_batches: int
    chunks: int = 1
    parts: int = 1
    recomputed_chunks: int = 0
