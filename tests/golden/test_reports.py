"""Did the words or the columns of a report change? If that was meant: `python -m tests.golden.reports`."""

import pytest

from tests.golden.reports import DATA, RENDERINGS


def test_every_rendering_is_stored_and_none_besides() -> None:
    assert {path.name for path in DATA.iterdir()} == set(RENDERINGS)


@pytest.mark.parametrize("name", RENDERINGS)
def test_a_report_reads_as_it_did(name: str) -> None:
    assert RENDERINGS[name]() == (DATA / name).read_text(encoding="utf-8")
