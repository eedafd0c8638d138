"""What every fake rank does, by the contract of the trial folder and with nothing but the standard library."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

RANK = int(os.environ.get("RANK", "0"))
WORLD_SIZE = int(os.environ.get("WORLD_SIZE", "1"))


def begin() -> Path:
    """The trial folder, after this process has written itself down."""
    assert sys.argv[1:3] == ["trial", "--folder"], sys.argv
    folder = Path(sys.argv[3])
    stat = Path("/proc/self/stat").read_text()
    start_time = int(stat.rpartition(")")[2].split()[19])
    write(folder / f"rank-{RANK}.pid", json.dumps({"pid": os.getpid(), "start_time": start_time}))
    return folder


def write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_text(text)
    part.replace(path)


def fail(folder: Path, status: str, message: str, *, phase: str = "") -> None:
    write(folder / f"rank-{RANK}.json", json.dumps({"status": status, "phase": phase, "message": message}))


def write_result(folder: Path) -> None:
    ranks = [{"rank": rank, "parameters": 50, "tensor_bytes": 1000 + rank} for rank in range(WORLD_SIZE)]
    result = {
        "warmup_step_times_s": [0.5, 0.2], "step_times_s": [0.2, 0.1, 0.3], "losses": [3.0, 2.0, 1.0, 0.5, 0.25],
        "gradient_norms": [1.0, 1.0, 1.0, 1.0, 1.0], "ranks": ranks, "parameters": 100,
        "fingerprint": {"torch": "none"},
    }  # fmt: skip
    write(folder / "result.json", json.dumps(result))


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.02)


def hang_whatever_comes() -> None:
    """As a rank in a driver call: SIGTERM does nothing. It has a child in a session of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", "300"], start_new_session=True)
    time.sleep(300)
