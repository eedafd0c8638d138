"""Writes a result that nobody can read."""

from fake_workers.rank import begin, write

write(begin() / "result.json", '{"step_times_s": "fast"}')
