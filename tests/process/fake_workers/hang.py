"""Never ends."""

from fake_workers.rank import RANK, begin, hang_whatever_comes, write

folder = begin()
write(folder / f"rank-{RANK}.phase", "warm-up step 1")
hang_whatever_comes()
