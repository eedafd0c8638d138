"""Did an exported file change? If that was meant: `python -m tests.golden.exports`, and a line in CHANGELOG."""

import pytest

from tests.golden.exports import FOLDER, exported

FILES = {path.as_posix(): text for path, text in exported()}


def test_every_exported_file_is_kept_and_none_besides():
    assert {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_an_exported_file_is_what_it_was(name):
    assert FILES[name] == (FOLDER / name).read_text(encoding="utf-8")
