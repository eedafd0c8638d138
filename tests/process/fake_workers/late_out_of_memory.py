"""A crash is written first, the out-of-memory that it follows from half a second later."""

import sys
import time

from fake_workers.rank import begin, write

folder = begin()
write(folder / "rank-0.json", '{"status": "crash", "message": "connection closed by peer"}')
time.sleep(0.5)
write(folder / "rank-3.json", '{"status": "out-of-memory", "message": "tried to allocate 2.0 GiB"}')
time.sleep(300)
sys.exit(1)
