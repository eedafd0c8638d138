"""`python -m autotune` is `autotune`."""

from autotune.cli.main import run

run()
