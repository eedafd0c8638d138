"""Has its result, then never leaves."""

from fake_workers.rank import RANK, begin, hang_whatever_comes, write_result

folder = begin()
if RANK == 0:
    write_result(folder)
hang_whatever_comes()
