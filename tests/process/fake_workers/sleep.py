"""Takes its time, and leaves when it is told to."""

import time

from fake_workers.rank import begin

begin()
time.sleep(300)
