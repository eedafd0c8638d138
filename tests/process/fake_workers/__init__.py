"""Workers that end badly, each in one way. A trial runs them as `python -m fake_workers.NAME trial --folder DIR`."""
