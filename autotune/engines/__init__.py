"""One module per training engine: its rules, its memory profile, its launch files."""
