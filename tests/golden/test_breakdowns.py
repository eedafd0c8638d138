"""Did a prediction change? If that was meant: `python -m tests.golden.update`, and a line in CHANGELOG."""

import pytest

from autotune.spec.layout import Layout
from autotune.spec.schedules import SCHEDULES
from tests.golden.breakdowns import CASES, breakdown, stored


def test_every_case_is_stored_and_none_besides() -> None:
    assert set(stored()) == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_breakdown_is_what_it_was(name: str) -> None:
    before, now = stored()[name], breakdown(name)

    assert {group: set(parts) for group, parts in now.items()} == {group: set(parts) for group, parts in before.items()}
    for group, parts in before.items():
        assert now[group] == pytest.approx(parts, rel=1e-9), group


@pytest.mark.parametrize("name", CASES)
def test_a_golden_layout_uses_the_whole_cluster(name: str) -> None:
    question, key, _ = CASES[name]
    layout = Layout.from_key(key)

    assert layout.gpus == question.cluster.gpus
    assert question.workload.global_batch_size % (layout.micro_batch_size * layout.dp) == 0
    assert layout.schedule in SCHEDULES
