"""Which part of a prediction is likely wrong: the one whose scale would explain the errors of a source best.

Within a source the relative errors are taken as a sum over parts,

    (m_i - p_i) / m_i  ≈  Σ_k a_k · x_ik / m_i        x_ik: part k of row i, m: measured, p: predicted

with a_k drawn towards 0 (ridge regression, Hoerl and Kennard 1970). The part with the largest a_k · x_ik in the
direction of a row's error is named. It is a hint and no proof: parts that grow together cannot be told apart.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from autotune.accuracy.prediction import OUTSIDE_PART, PredictedRun
from autotune.spec.measured import MemoryKind

# Choices, not measurements: a formula's part may be wrong by a factor of two, and what no part explains is 5 %.
_PART_SCATTER: Final = math.log(2.0)
_ROW_SCATTER: Final = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspicion:
    """A row, its error, and the part that is likely wrong; scale: what the part would be multiplied by."""

    row: PredictedRun
    error: float
    part: str
    scale: float


def blame_time(rows: Sequence[PredictedRun]) -> list[Suspicion]:
    """For every row with a time error."""
    timed = [row for row in rows if row.time_error is not None]
    return _blame(timed, [row.time_error or 0.0 for row in timed], [row.time_parts_s for row in timed])


def blame_memory(rows: Sequence[PredictedRun]) -> list[Suspicion]:
    """For every row with a memory error. What lives outside the framework is a part where the whole device was read."""
    weighed = [row for row in rows if row.memory_error is not None]
    return _blame(weighed, [row.memory_error or 0.0 for row in weighed], [_compared_parts(row) for row in weighed])


def _compared_parts(row: PredictedRun) -> dict[str, float]:
    parts = dict(row.memory_parts_bytes)
    if row.run.memory_kind is not MemoryKind.DEVICE:
        parts[OUTSIDE_PART] = 0.0
    return parts


def _blame(
    rows: Sequence[PredictedRun], errors: Sequence[float], parts: Sequence[Mapping[str, float]]
) -> list[Suspicion]:
    """Source by source, since a part may be wrong in one framework and right in another."""
    found: list[Suspicion] = []
    for source in dict.fromkeys(row.run.source for row in rows):
        members = [index for index, row in enumerate(rows) if row.run.source == source]
        names = list(parts[members[0]])
        shares = np.array([[parts[index][name] for name in names] for index in members])
        # Relative to the measured value: p / (1 + e) with p the sum of the parts.
        relative = np.array([errors[index] for index in members])
        measured = shares.sum(axis=1) / (1 + relative)
        x, wanted = shares / measured[:, None], -relative
        ridge = (_ROW_SCATTER / _PART_SCATTER) ** 2 * np.eye(len(names))
        scales = np.linalg.solve(x.T @ x + ridge, x.T @ wanted)
        moved = x * scales * np.sign(wanted)[:, None]
        for place, index in enumerate(members):
            part = int(moved[place].argmax())
            found.append(
                Suspicion(row=rows[index], error=errors[index], part=names[part], scale=1 + float(scales[part]))
            )
    return found
