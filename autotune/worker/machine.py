"""The machine as this process sees it: cores, memory, names, versions."""

import os
import platform
import re
from pathlib import Path

import torch
import torch.distributed as dist

_CGROUP_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
"""Of this container, by version 2 and version 1 of the kernel's interface."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def local_processes() -> int:
    """Processes of this trial on this machine, as torchrun says."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def device_name(device: torch.device) -> str:
    """The GPU's or the processor's own name."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def host_memory_bytes() -> tuple[int, int]:
    """(all, available) memory of this machine, or of the container if that has less."""
    text = Path("/proc/meminfo").read_text(encoding="utf-8")
    found = {key: int(kib) * 1024 for key, kib in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    total, available = found["MemTotal"], found["MemAvailable"]
    for limit_file, usage_file in _CGROUP_LIMITS:
        limit, used = _number(limit_file), _number(usage_file)
        if limit is not None and used is not None and limit < total:
            return limit, min(available, limit - used)
    return total, available


def _number(path: str) -> int | None:
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None  # "max": no limit


def versions(device: torch.device) -> dict[str, str]:
    """Software that a measurement depends on."""
    found = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }
    if device.type == "cuda":
        found["cuda"] = str(torch.version.cuda)
    return found


def fingerprint(device: torch.device) -> dict[str, str]:
    """Software and hardware of a trial, by name."""
    return versions(device) | {
        "device": device_name(device),
        "cores": str(cores()),
        "threads_per_process": str(torch.get_num_threads()),
        "backend": str(dist.get_backend()),
    }
