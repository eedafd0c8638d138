from dataclasses import fields

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from autotune.cost.estimates import Estimates, MemoryEstimate, TimeEstimate
from autotune.search.dominance import as_large
from autotune.spec.layout import LayoutTable

PARTS = [f.name for f in fields(MemoryEstimate)]
few_bytes = st.integers(0, 2)
rows = st.tuples(st.integers(0, 1), st.lists(few_bytes, min_size=len(PARTS), max_size=len(PARTS)))


def _table(many) -> tuple[LayoutTable, Estimates]:
    zeros = np.zeros(len(many))
    sizes = np.array([parts for _, parts in many], dtype=np.float64)
    estimates = Estimates(
        memory=MemoryEstimate(**{name: sizes[:, column] for column, name in enumerate(PARTS)}),
        time=TimeEstimate(**{f.name: zeros for f in fields(TimeEstimate)}),
        fullest_stage=np.zeros(len(many), dtype=np.int64),
        host_bytes=zeros,
    )
    return LayoutTable.from_columns({"schedule": [schedule for schedule, _ in many]}), estimates


@given(st.lists(rows, min_size=1, max_size=30), st.data())
def test_what_an_out_of_memory_rules_out_is_what_comparing_every_part_of_every_row_finds(many, data):
    dead = data.draw(st.integers(0, len(many) - 1))

    got = as_large(*_table(many), dead)

    by_hand = [
        schedule == many[dead][0] and all(part >= other for part, other in zip(parts, many[dead][1], strict=True))
        for schedule, parts in many
    ]
    assert got.tolist() == by_hand


def test_one_smaller_part_saves_a_layout_whatever_its_total():
    # Row 1 needs 2 bytes more of each part but the last, of which it needs one byte less.
    many = [(0, [1] * len(PARTS)), (0, [3] * (len(PARTS) - 1) + [0]), (1, [9] * len(PARTS))]

    assert as_large(*_table(many), 0).tolist() == [True, False, False]
