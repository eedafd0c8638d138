"""Real runs: a folder each, started, watched and read."""
