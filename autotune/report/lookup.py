"""Finds layouts in a table by their keys, many at once."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from autotune.errors import AutotuneError
from autotune.spec.axes import AXIS_NAMES
from autotune.spec.layout import Layout, LayoutTable


def rows_of(table: LayoutTable, keys: Collection[str]) -> dict[str, int]:
    """The row of each key. Raises AutotuneError for a key that the table does not hold."""
    if not keys:
        return {}
    wanted = LayoutTable.of(Layout.from_key(key) for key in keys)
    candidates = np.flatnonzero(np.isin(_fingerprint(table), _fingerprint(wanted)))
    found = {table.layout(int(row)).key: int(row) for row in candidates}
    missing = [key for key in keys if key not in found]
    if missing:
        msg = f"the table of {len(table)} layouts does not hold {', '.join(missing)}, which it was searched with"
        raise AutotuneError(msg)
    return {key: found[key] for key in keys}


def _fingerprint(table: LayoutTable) -> NDArray[np.uint64]:
    """Equal for equal rows, and seldom for others: a polynomial of the codes that wraps around at 2**64."""
    fingerprint = np.zeros(len(table), dtype=np.uint64)
    for name in AXIS_NAMES:
        fingerprint *= np.uint64(1_000_003)
        fingerprint += getattr(table, name).astype(np.uint64)
    return fingerprint
