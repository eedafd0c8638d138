"""Runs one trial under torchrun as a command would: `python -m fake_workers.runner MODULE PROCESSES FOLDER`."""

import os
import sys
from pathlib import Path

from fake_workers.trial import trial

from autotune.trials.torchrun import TorchrunRunner

module, processes, folder = sys.argv[1:]
runner = TorchrunRunner(python=Path(sys.executable), environment=os.environ, module=module)
runner.run(trial(processes=int(processes)), Path(folder), time_limit_s=60)
