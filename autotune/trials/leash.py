"""Leash: runs a command that gets SIGTERM when the process that started it dies, however that dies.

    python leash.py PARENT_PID COMMAND...

A trial must not go on when its search is killed by SIGKILL, which no clean-up of ours survives. The kernel's parent
death signal outlives the exec below; torchrun passes SIGTERM on to its workers. Linux, prctl(2), PR_SET_PDEATHSIG.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(arguments: list[str]) -> None:
    """Become the command, on the leash of the given parent."""
    parent, *command = arguments
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):  # it died before the leash was on
        sys.exit(128 + signal.SIGTERM)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
