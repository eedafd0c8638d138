"""A rank writes what nobody can read, then hangs."""

from fake_workers.rank import begin, hang_whatever_comes

folder = begin()
(folder / "rank-0.json").write_bytes(b'{"status": "out-of-\xff')
hang_whatever_comes()
