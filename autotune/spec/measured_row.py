"""Row: one line of a CSV of measured runs, cell by cell, with what its source leaves unsaid filled in and noted."""

import csv
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from autotune.errors import Fault, InputError
from autotune.spec.load import read_text
from autotune.spec.reader import shown, suggestion

WHOLE: Final = (
    "hidden", "layers", "heads", "kv_heads", "ffn", "vocab", "seq", "moe_experts", "moe_topk", "moe_ffn", "gpus",
    "gpus_per_node", "global_batch", "micro_batch", "grad_accum", "tp", "pp", "vpp", "cp", "ep", "dp", "zero_stage",
)  # fmt: skip
NUMBER: Final = (
    "intra_gbps", "inter_gbps", "step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu", "peak_memory_gib",
)  # fmt: skip
FLAG: Final = ("gated_mlp", "tied_embeddings", "seq_parallel", "optimizer_sharding", "oom", "suspect")
TEXT: Final = (
    "source", "run_id", "model", "gpu", "precision", "framework", "attention_kernel", "recompute", "pp_schedule",
    "memory_kind", "notes", "status", "source_ref", "use",
)  # fmt: skip
COLUMNS: Final = (*TEXT, *WHOLE, *NUMBER, *FLAG)
REQUIRED: Final = ("source", "run_id", "model", "gpu", "gpus", "framework", "seq", "micro_batch", "tp", "pp")
"""Columns without which no row could be understood; a cell of them may be blank."""

_ZERO_IS_A_VALUE: Final = ("zero_stage",)


@dataclass(frozen=True, kw_only=True, slots=True)
class Assumed:
    """What is taken for a cell that a source leaves blank, and why that is believed."""

    value: str
    reason: str


class NotDescribedError(Exception):
    """A row says too little, or something that no word of ours stands for. The message is the reason."""


class Row:
    """The cells of one line. `notes`: what was assumed or passed over while it was read, in words."""

    def __init__(self, cells: Mapping[str, str], assumed: Mapping[str, Assumed]) -> None:
        self._cells = cells
        self._assumed = assumed
        self.notes: list[str] = []

    def stated(self, name: str) -> str:
        """The cell as printed; "" where it is blank."""
        return self._cells.get(name, "")

    def text(self, name: str) -> str:
        """The cell, or what is assumed of its source; "" for neither."""
        stated = self.stated(name)
        if stated or name not in self._assumed:
            return stated
        assumed = self._assumed[name]
        self.note(f"{name} is taken as {assumed.value}: {assumed.reason}")
        return assumed.value

    def number(self, name: str) -> float | None:
        """A number, None where it is not known."""
        text = self.text(name)
        return float(text) if text else None

    def whole(self, name: str) -> int | None:
        """A whole number, None where it is not known."""
        number = self.number(name)
        return None if number is None else round(number)

    def flag(self, name: str) -> bool | None:
        """Yes, no, or None where it is not known."""
        number = self.number(name)
        return None if number is None else number == 1

    def needed(self, name: str) -> int:
        """A whole number that must be known. Raises NotDescribedError."""
        value = self.whole(name)
        if value is None:
            message = f"{name} is not stated"
            raise NotDescribedError(message)
        return value

    def word(self, key: str) -> str:
        """The value of `key=value` in the notes, "" where there is none."""
        match = re.search(rf"(?:^|[;\s]){re.escape(key)}=([^;\s]*)", self.stated("notes"))
        return match.group(1) if match else ""

    def mentions(self, words: str) -> bool:
        """Whether the notes hold these words, upper or lower case."""
        return words.lower() in self.stated("notes").lower()

    def note(self, sentence: str) -> None:
        """Remember what was assumed or passed over, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)


def read_rows(path: Path, assumed: Mapping[str, Mapping[str, Assumed]]) -> list[Row]:
    """The rows of a CSV. Raises InputError with all faults: columns, cells that are no number, doubled run ids."""
    where = str(path)
    reader = csv.DictReader(io.StringIO(read_text(path)), strict=True)
    try:
        header = [name.strip() for name in reader.fieldnames or []]
        reader.fieldnames = header
        lines = [(reader.line_num, values) for values in reader]
    except csv.Error as error:
        message = f"is not CSV: {error} in line {reader.line_num}; correct that line"
        raise InputError.one(message, where=where) from error
    faults = _header_faults(header, where)
    if faults:
        raise InputError(faults)
    seen: set[str] = set()
    rows = []
    for line, values in lines:
        cells = _cells(values, where, line, faults)
        faults.extend(_cell_faults(cells, where, line, seen))
        rows.append(Row(cells, assumed.get(cells.get("source", ""), {})))
    if faults:
        raise InputError(faults)
    return rows


def _header_faults(header: list[str], where: str) -> list[Fault]:
    faults = []
    for name in REQUIRED:
        if name not in header:
            near = suggestion(name, [other for other in header if other not in COLUMNS])
            faults.append(Fault(where=where, key=name, message=f"the column is missing{near}; add it"))
    doubled = {name for name in header if header.count(name) > 1}
    faults.extend(Fault(where=where, key=name, message="the column is there twice; keep one") for name in doubled)
    return faults


def _cells(values: dict[str, str], where: str, line: int, faults: list[Fault]) -> dict[str, str]:
    """The cells of a line by column; one that is too long or too short is noted."""
    known = {name: text for name, text in values.items() if name is not None and text is not None}
    if len(known) != len(values):
        longer = None in values
        message = f"has {'more' if longer else 'fewer'} cells than the header has columns; correct that line"
        faults.append(Fault(where=where, key=f"line {line}", message=message))
    return {name: text.strip() for name, text in known.items()}


def _cell_faults(cells: dict[str, str], where: str, line: int, seen: set[str]) -> list[Fault]:
    faults = []
    run_id = cells.get("run_id", "")
    if not run_id or not cells.get("source"):
        faults.append(Fault(where=where, key=f"line {line}", message="has no source or no run_id; give both"))
    elif run_id in seen:
        message = f"run_id {shown(run_id)} is there twice; every run has an id of its own"
        faults.append(Fault(where=where, key=f"line {line}", message=message))
    seen.add(run_id)
    for names, wrong in ((WHOLE, _not_whole), (NUMBER, _not_a_number), (FLAG, _not_a_flag)):
        for name in names:
            text = cells.get(name, "")
            complaint = wrong(name, text) if text else ""
            if complaint:
                faults.append(Fault(where=where, key=f"line {line}, {name}", message=f"{shown(text)} {complaint}"))
    return faults


def _not_a_number(name: str, text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return "is not a number; give one, or leave the cell blank"
    if not math.isfinite(value) or value < 0 or (value == 0 and name not in _ZERO_IS_A_VALUE):
        return "is not a positive number; leave the cell blank where it is not known"
    return ""


def _not_whole(name: str, text: str) -> str:
    return _not_a_number(name, text) or ("" if float(text).is_integer() else "is not a whole number; give one")


def _not_a_flag(name: str, text: str) -> str:
    return "" if text in {"0", "1", "0.0", "1.0"} else f"is neither 0 nor 1; {name} is a yes or a no"
