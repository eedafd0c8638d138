"""Exits with 0 and leaves nothing."""

from fake_workers.rank import begin

begin()
