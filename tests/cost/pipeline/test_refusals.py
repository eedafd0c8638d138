"""A schedule that does not exist at a size is refused in words, with all faults at once."""

from typing import Any

import pytest

from autotune.cost.pipeline.registry import BUILDERS, build
from autotune.errors import InputError
from autotune.spec.schedules import SCHEDULES


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("dualpipe", {"pp": 3, "micro_batches": 6}, "pp=3 is odd, dualpipe pairs ranks from both ends"),
        ("chimera", {"pp": 4, "micro_batches": 5}, "5 micro-batches are odd, chimera sends half of them each way"),
        ("interleaved", {"pp": 4, "micro_batches": 6}, "6 micro-batches are no multiple of pp=4, as interleaved needs"),
        ("dualpipev", {"pp": 4, "micro_batches": 7}, r"7 micro-batches, dualpipev needs at least 2 \* pp = 8"),
        ("1f1b", {"pp": 0, "micro_batches": 4}, "pp=0, at least 1 is needed"),
        ("1f1b", {"pp": 2, "micro_batches": 0}, "0 micro-batches, at least 1 is needed"),
        ("1f1b", {"pp": 2, "micro_batches": 4, "vpp": 2}, "vpp=2, 1f1b has 1 on each rank"),
        ("zb-v", {"pp": 2, "micro_batches": 4, "vpp": 3}, "vpp=3, zb-v has 2 on each rank"),
        ("breadth-first", {"pp": 2, "micro_batches": 4, "vpp": 1}, "vpp=1, breadth-first needs at least 2 chunks"),
        ("1f1b", {"pp": 2, "micro_batches": 4, "parts": 2}, "parts=2, 1f1b does not slice sequences; seq1f1b does"),
        ("seq1f1b", {"pp": 2, "micro_batches": 4, "parts": 0}, "parts=0, at least 1 is needed"),
        ("gpipe", {"pp": 2, "micro_batches": 4, "waves": 2}, "waves=2, gpipe has none; hanayo does"),
        ("hanayo", {"pp": 2, "micro_batches": 4, "waves": 0}, "waves=0, at least 1 is needed"),
        ("gpipe", {"pp": 2, "micro_batches": 4, "recomputed_chunks": 1}, "gpipe does not recompute by chunk"),
        ("chronos", {"pp": 2, "micro_batches": 4, "recomputed_chunks": 3}, "between 0 and vpp=2 are there"),
        ("chimaera", {"pp": 2, "micro_batches": 4}, "there is no schedule 'chimaera'; did you mean 'chimera'"),
        ("x", {"pp": 2, "micro_batches": 4}, "known are gpipe, 1f1b"),
    ],
)
def test_a_schedule_that_does_not_exist_is_refused_in_words(
    name: str, arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        build(name, **arguments)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        build("dualpipe", pp=3, micro_batches=5, parts=2)

    assert [fault.key for fault in caught.value.faults] == ["pp", "micro_batches", "micro_batches", "parts"]


def test_every_schedule_of_the_facts_is_built() -> None:
    assert set(BUILDERS) == set(SCHEDULES)


def test_the_fewest_chunks_are_the_default() -> None:
    assert build("interleaved", pp=4, micro_batches=4).vpp == 2
    assert build("hanayo", pp=4, micro_batches=4, waves=2).vpp == 4
    assert build("zb-v", pp=4, micro_batches=8, vpp=2).vpp == 2
    assert build("1f1b", pp=4, micro_batches=8).vpp == 1
