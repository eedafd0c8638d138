"""What a process holds: tensors, resident pages, and a limit that makes an allocation fail for real."""

import ctypes
import gc
import re
import resource
import weakref
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_PROCESS = Path("/proc/self")
_RESET_PEAK = "5"
"""What resets VmHWM when written to clear_refs: proc(5)."""

_M_MMAP_THRESHOLD = -3
_MAPPED_FROM_BYTES = 128 * 1024
"""malloc.h, and glibc's first value, which stays where it is once it has been set."""


class TensorPeak(TorchDispatchMode):
    """Counts the bytes of all tensors on the CPU while it is entered, also those that autograd keeps; `peak_bytes`.

    It looks at the result of every operation and follows its storage until that is freed. Storages that are there
    already are found by the garbage collector. It slows a step down, so the step that it sees must not be timed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.peak_bytes = 0
        self._held_bytes = 0
        self._live: dict[int, tuple[weakref.ref[torch.UntypedStorage], int]] = {}

    def __enter__(self) -> Self:
        for thing in gc.get_objects():
            # type() and not isinstance(): the latter runs code of objects that only pretend to be something.
            if issubclass(type(thing), torch.Tensor):
                self._see(thing)
        self._resize = torch.UntypedStorage.resize_
        torch.UntypedStorage.resize_ = _seen_by(self, self._resize)
        super().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        torch.UntypedStorage.resize_ = self._resize
        self._live.clear()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation and look at what it returns."""
        if any(kind not in (torch.Tensor, torch.nn.Parameter) for kind in types):
            return NotImplemented  # a DTensor runs its own operations on local tensors first, and they come back here
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self._see(leaf)
        return result

    def _see(self, tensor: torch.Tensor) -> None:
        if isinstance(tensor, DTensor):
            tensor = tensor._local_tensor
        if type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type == "cpu":
            self.see_storage(tensor.untyped_storage())

    def see_storage(self, storage: torch.UntypedStorage) -> None:
        """Take note of a storage and of its present size."""
        key, size_bytes = id(storage), storage.nbytes()
        known = self._live.get(key)
        if known is not None:
            self._held_bytes -= known[1]
        reference = known[0] if known is not None else weakref.ref(storage, lambda _: self._forget(key))
        self._live[key] = (reference, size_bytes)
        self._held_bytes += size_bytes
        self.peak_bytes = max(self.peak_bytes, self._held_bytes)

    def _forget(self, key: int) -> None:
        _, size_bytes = self._live.pop(key, (None, 0))
        self._held_bytes -= size_bytes


def _seen_by(tracker: TensorPeak, resize: Any) -> Any:
    """FSDP2 frees and takes memory by resizing storages, which is no operation that a dispatch mode sees."""

    def resize_and_see(storage: torch.UntypedStorage, size_bytes: int) -> Any:
        result = resize(storage, size_bytes)
        if storage.device.type == "cpu":
            tracker.see_storage(storage)
        return result

    return resize_and_see


def status_bytes(key: str) -> int:
    """A line of /proc/self/status in bytes: "VmRSS", "VmHWM", "VmData"."""
    text = (_PROCESS / "status").read_text(encoding="utf-8")
    match = re.search(rf"^{key}:\s+(\d+) kB", text, re.MULTILINE)
    assert match is not None, key
    return int(match.group(1)) * 1024


def reset_resident_peak() -> bool:
    """Let VmHWM begin anew from what is resident now; False where the kernel does not allow it."""
    try:
        (_PROCESS / "clear_refs").write_text(_RESET_PEAK, encoding="ascii")
    except OSError:
        return False
    return True


def limit_memory(device: torch.device, limit_bytes: int) -> None:
    """From now on this process may hold at most `limit_bytes` more; what asks for more gets an out-of-memory error.

    On the CPU it is a limit on private memory (RLIMIT_DATA) beyond what interpreter and libraries hold at this moment.
    Threads take their stacks from it too, so those that are known to be needed must run already.
    """
    if device.type == "cuda":
        total_bytes = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit_bytes / total_bytes), device)
        return
    _return_freed_blocks()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (status_bytes("VmData") + limit_bytes, hard))


def _return_freed_blocks() -> None:
    """Let glibc give every freed block of 128 KiB or more back, as mallopt(3) describes.

    By itself it keeps blocks of up to 32 MiB for later, which counts against a limit: the resident peak was 45-54 %
    above the tensors, and 11 % with this; a step takes longer by the pages it asks for anew (4.2 M parameters, AdamW,
    two processes, 2026-12-01).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # other C libraries have none, and no such habit
        mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)
