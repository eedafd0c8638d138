"""For all tests: an interrupt is not ignored, also where the test run was started in the background."""

import signal

from hypothesis import settings

# A shell lets its background jobs ignore interrupts, and whatever they start inherits that: Ctrl-C would do nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples on every run, so that a green run is green again; a longer search is a matter of changing this.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")
