"""Rank 1 runs out of memory when rank 0 hangs in a collective that no signal but SIGKILL ends."""

import sys

from fake_workers.rank import RANK, begin, fail, hang_whatever_comes, wait_for

folder = begin()
if RANK == 1:
    wait_for(folder / "rank-0.pid")
    fail(folder, "out-of-memory", "tried to allocate 2.0 GiB", phase="forward")
    sys.exit(1)
hang_whatever_comes()
