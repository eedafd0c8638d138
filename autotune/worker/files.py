"""Writes files whole or not at all: who finds one never reads half of it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path


def write_json(path: Path, document: Mapping[str, object]) -> None:
    """`write_atomically` of a JSON document."""
    write_atomically(path, json.dumps(document, indent=2) + "\n")


def write_atomically(path: Path, text: str) -> None:
    """Write the whole file or leave what was there. On the disk when this returns."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
