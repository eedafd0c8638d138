"""Which layouts cannot fit because another one ran out of memory."""

import numpy as np

from autotune.cost.estimates import Estimates
from autotune.spec.layout import BoolColumn, LayoutTable


def as_large(table: LayoutTable, estimates: Estimates, row: int) -> BoolColumn:
    """Rows of the same schedule that need at least as much as `row` in every named part of the memory; also `row`.

    Compared part by part: a larger total may hide a smaller part that was the estimate's fault, so that only what is
    larger whichever part was wrong is ruled out. All rows of one search are of one engine.
    """
    worse = np.asarray(table.schedule == table.schedule[row])
    for part_bytes in estimates.memory.parts.values():
        worse &= part_bytes >= part_bytes[row]
    return worse
