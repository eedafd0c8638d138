"""`python -m autotune.worker trial --folder DIR`, once a rank under torchrun, and `… probe --out FILE [--gpus N]`."""

import argparse
import os
import sys
from pathlib import Path

from autotune.worker.failure import RankJournal


def main() -> None:
    """Parse and run. torch is loaded behind that, since it takes seconds."""
    parser = argparse.ArgumentParser(prog="python -m autotune.worker", description=__doc__)
    modes = parser.add_subparsers(dest="mode", required=True)
    trial = modes.add_parser("trial", help="run one rank of the trial in a folder")
    trial.add_argument("--folder", type=Path, required=True)
    probe = modes.add_parser("probe", help="measure this machine")
    probe.add_argument("--out", type=Path, required=True)
    probe.add_argument("--gpus", type=int)
    arguments = parser.parse_args()
    if arguments.mode == "trial":
        _trial(arguments.folder)
    else:
        from autotune.worker.probe import write_probe

        write_probe(arguments.out, gpus=arguments.gpus)


def _trial(folder: Path) -> None:
    journal = RankJournal(folder, rank=int(os.environ.get("RANK", "0")))
    journal.record_process()
    with journal:
        from autotune.worker.trial import run_trial

        run_trial(folder, journal)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # process groups and their threads take seconds, or for ever, to end in order


if __name__ == "__main__":
    main()
