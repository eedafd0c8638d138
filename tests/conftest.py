"""For all tests: an interrupt is not ignored, also where the test run was started in the background."""

import signal

# A shell lets its background jobs ignore interrupts, and whatever they start inherits that: Ctrl-C would do nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)
