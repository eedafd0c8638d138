"""A search in a process of its own, with slow trials, to be killed: python -m tests.search.killable FOLDER.

runs.log gets "start KEY" and "end KEY" for each trial; between them its result appears as results/KEY.json.
"""

import json
import sys
import time
from pathlib import Path

from autotune.cost.profile import Factors
from autotune.search.journal import open_storage
from autotune.search.loop import run_search
from autotune.search.stopping import Budget
from autotune.spec.layout import Layout
from autotune.spec.load import to_json, trial_result_from_json
from autotune.spec.outcome import TrialResult
from tests.search.toy import Machine, candidates

TRIALS = 6
TRIAL_S = 0.3


def main(folder: Path) -> None:
    results = folder / "results"
    results.mkdir(exist_ok=True)
    machine = Machine(Factors(compute_time=1.3, memory=1.2), (0.01, -0.01, 0.005))

    def run(number: int, layout: Layout) -> TrialResult:
        _note(folder, f"start {layout.key}")
        time.sleep(TRIAL_S)
        result = machine.run(number, layout)
        partial = results / f"{layout.key}.partial"
        partial.write_text(json.dumps(to_json(result)))
        partial.rename(results / f"{layout.key}.json")
        _note(folder, f"end {layout.key}")
        return result

    result = run_search(
        candidates=candidates(time_counts=False),
        study_name="killed",
        storage=open_storage(folder / "journal.log"),
        seed=0,
        budget=Budget(trials=TRIALS),
        run_trial=run,
        finished={path.stem: trial_result_from_json(json.loads(path.read_text())) for path in results.glob("*.json")},
    )
    (folder / "answer.json").write_text(
        json.dumps({"study": result.study_name, "ran": [t.layout.key for t in result.tried if t.result is not None]})
    )


def _note(folder: Path, line: str) -> None:
    with (folder / "runs.log").open("a") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
