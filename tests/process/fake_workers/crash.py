"""Dies of an exception before it can report it."""

from fake_workers.rank import begin

begin()
msg = "the third layer is missing"
raise RuntimeError(msg)
