"""Rank 1 is killed as the kernel does when the host is out of memory; rank 0 sees only a closed connection."""

import os
import signal
import sys
import time

from fake_workers.rank import RANK, WORLD_SIZE, begin, fail, wait_for

folder = begin()
if WORLD_SIZE == 1 or RANK == 1:
    if WORLD_SIZE > 1:
        wait_for(folder / "rank-0.json")
    os.kill(os.getpid(), signal.SIGKILL)
fail(folder, "crash", "connection closed by peer")
time.sleep(300)
sys.exit(1)
