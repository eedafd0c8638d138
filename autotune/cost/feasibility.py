"""Whether a layout fits: the usable memory, the upper bound of the peak, and the verdict of every row."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from autotune.cost.estimates import Estimates
from autotune.cost.profile import MemoryProfile
from autotune.spec.cluster import ClusterSpec
from autotune.spec.layout import FloatColumn
from autotune.spec.verdict import Verdict
from autotune.spec.workload import Problem

VerdictColumn = NDArray[np.int8]

VERDICTS: Final = (Verdict.FITS, Verdict.BORDERLINE, Verdict.DOES_NOT_FIT)
"""What the codes of `verdict_codes` stand for."""

FITS, BORDERLINE, DOES_NOT_FIT = range(3)


def limit_bytes(cluster: ClusterSpec, memory_limit_bytes: float | None) -> float:
    """Bytes that one process may use: what the user allows, and never more than is usable on the GPU."""
    usable_bytes = cluster.gpu.usable_memory_bytes.value
    return usable_bytes if memory_limit_bytes is None else min(memory_limit_bytes, usable_bytes)


def upper_bytes(estimates: Estimates, profile: MemoryProfile) -> FloatColumn:
    """The upper bound of each row's peak."""
    return estimates.memory.peak_bytes * profile.upper_bound.value


def verdict_codes(estimates: Estimates, profile: MemoryProfile, limit_bytes: float, problem: Problem) -> VerdictColumn:
    """The verdict of each row, as an index into VERDICTS.

    Fits: the upper bound is within the limit. Does not fit: the point is above it, or a node's processes need more RAM
    than the node has. Borderline: between.
    """
    peak_bytes = estimates.memory.peak_bytes
    fits = peak_bytes * profile.upper_bound.value <= limit_bytes
    breaks = (peak_bytes > limit_bytes) | host_is_short(estimates, problem)
    return np.where(breaks, DOES_NOT_FIT, np.where(fits, FITS, BORDERLINE)).astype(np.int8)


def host_is_short(estimates: Estimates, problem: Problem) -> NDArray[np.bool_]:
    """Rows whose processes need more RAM than a node has."""
    return np.asarray(estimates.host_bytes > problem.cluster.host_memory_bytes.value)
