"""Units: the only place where GiB and GB, Gbit and GB/s are parsed and printed. Inside the package all is SI base."""

import re

KIB = 2**10
MIB = 2**20
GIB = 2**30
TIB = 2**40
GB = 10**9

_NUMBER = r"^\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z/·* -]+?)\s*$"

_BYTES = {
    "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
_BITS_PER_S = {"Gb/s": 10**9 / 8, "Gbit/s": 10**9 / 8, "Gbps": 10**9 / 8, "Mbit/s": 10**6 / 8, "Tbit/s": 10**12 / 8}
_BYTES_PER_S = {f"{name}/s": float(size) for name, size in _BYTES.items()} | _BITS_PER_S
_FLOPS_PER_S = {"FLOP/s": 1.0, "MFLOP/s": 1e6, "GFLOP/s": 1e9, "TFLOP/s": 1e12, "PFLOP/s": 1e15}
_SECONDS = {
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0,
}  # fmt: skip


def parse_bytes(text: str) -> int:
    """Bytes of "80 GiB". Raises ValueError with a sentence; a bare number has no unit and is refused."""
    return round(_parse(text, {name: float(size) for name, size in _BYTES.items()}, example="80 GiB"))


def parse_bytes_per_s(text: str) -> float:
    """Bytes per second of "450 GB/s" or "400 Gbit/s". Raises ValueError with a sentence."""
    return _parse(text, _BYTES_PER_S, example="450 GB/s or 400 Gbit/s")


def parse_flops_per_s(text: str) -> float:
    """Floating-point operations per second of "989 TFLOP/s". Raises ValueError with a sentence."""
    return _parse(text, _FLOPS_PER_S, example="989 TFLOP/s")


def parse_seconds(text: str) -> float:
    """Seconds of "90 s", "10 min" or "5 us". Raises ValueError with a sentence."""
    return _parse(text, _SECONDS, example="10 min")


def _parse(text: str, units: dict[str, float], *, example: str) -> float:
    match = re.match(_NUMBER, text)
    if match is None:
        msg = f"'{text}' is not a number with a unit; write for example {example}"
        raise ValueError(msg)
    number, unit = match.groups()
    if unit not in units:
        msg = f"'{text}' has the unit '{unit}', known here are {', '.join(units)}; write for example {example}"
        raise ValueError(msg)
    return float(number) * units[unit]


def format_bytes(size_bytes: float) -> str:
    """Bytes -> "12.3 GiB", with the binary prefix that keeps the number readable."""
    for name, size in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(size_bytes) >= size:
            return f"{size_bytes / size:.1f} {name}"
    return f"{size_bytes:.0f} B"


def format_seconds(duration_s: float) -> str:
    """Seconds -> "1.23 s", "45.1 ms", "12 min"."""
    if duration_s >= 600:
        return f"{duration_s / 60:.0f} min"
    if duration_s >= 1:
        return f"{duration_s:.2f} s"
    if duration_s >= 1e-3:
        return f"{duration_s * 1e3:.1f} ms"
    return f"{duration_s * 1e6:.1f} us"


def format_count(count: float) -> str:
    """70553706496 -> "70.55 B" (parameters, layouts)."""
    for name, size in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:.2f} {name}"
    return f"{count:.0f}"
