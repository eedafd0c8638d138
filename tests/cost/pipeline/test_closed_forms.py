"""The closed forms that score the whole table, against the replay of the explicit tables."""

import numpy as np
import pytest

from autotune.cost.pipeline.registry import chunks_of
from autotune.cost.schedules import CLOSED_FORMS, Pipe
from tests.cost.pipeline.sizes import idle_in_own_span_s, replayed

BY_ONE_FORWARD = {"v-min": 0.5}
"""V-Min's closed form is the published 2/3; the replay is half a forward better."""
BY_ONE_BLOCK = {"chronos": 3.0}
"""Chronos' may count a block on its own; moved together by the replay, blocks overlap by one pass of a rank."""
TOLERANCE_S = {**BY_ONE_FORWARD, **BY_ONE_BLOCK}

ONE_ROUND = {"chimera", "hanayo", "bitpipe"}
"""Their formulas hold for as many micro-batches as ranks."""


def pipe(name: str, *, pp: int, m: int) -> Pipe:
    return Pipe(p=np.array([float(pp)]), m=np.array([float(m)]), v=np.array([float(chunks_of(name))]))


@pytest.mark.parametrize("pp", [2, 4, 8])
@pytest.mark.parametrize("name", sorted(CLOSED_FORMS))
def test_the_closed_bubble_is_that_of_the_replay(name: str, pp: int) -> None:
    m = pp if name in ONE_ROUND else 4 * pp
    closed = sum(float(term[0]) for term in CLOSED_FORMS[name].bubble(pipe(name, pp=pp, m=m)))

    simulated = idle_in_own_span_s(replayed(name, pp=pp, m=m))

    assert abs(max(closed, 0) - simulated) <= TOLERANCE_S.get(name, 0) + 1e-9


@pytest.mark.parametrize("pp", [2, 4, 8])
@pytest.mark.parametrize("name", sorted(CLOSED_FORMS))
def test_the_closed_peak_is_never_below_that_of_the_replay(name: str, pp: int) -> None:
    m = 4 * pp
    timeline = replayed(name, pp=pp, m=m)
    closed = [
        float(np.atleast_1d(CLOSED_FORMS[name].in_flight(pipe(name, pp=pp, m=m), np.array([float(rank)])))[0])
        for rank in range(pp)
    ]

    assert max(timeline.peak_bytes) <= min(max(closed), m) + 1e-9
