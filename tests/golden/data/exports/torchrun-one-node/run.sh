#!/usr/bin/env bash
# tiny on 1x8xh100: layout tp2-rep4-mbs1
# engine: torch 2.11 – 2.13
# predicted: step 12.50 s, peak memory 60.0 GiB of 79.0 GiB a GPU (basis: datasheet)
# batch: 64 sequences of 4096 tokens = micro-batches of 1 · 16 a step · dp 4
# made by: autotune export run
# PYTHON: the interpreter that has torch and autotune; the result is written to result.json beside this script.
set -euo pipefail

PYTHON="${PYTHON:-python3}"
FOLDER=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ -e "$FOLDER/trial.json" ]] || FOLDER="${SLURM_SUBMIT_DIR:?trial.json is not beside this script}"
"$PYTHON" -c 'import autotune, torch' || {
    echo "$PYTHON has not both torch and autotune: activate their environment, or set PYTHON" >&2
    exit 3
}

export PYTORCH_ALLOC_CONF=expandable_segments:True
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

SRUN=()
RENDEZVOUS=(--standalone)

"${SRUN[@]}" "$PYTHON" -m torch.distributed.run \
    --nnodes 1 --nproc-per-node 8 "${RENDEZVOUS[@]}" --max-restarts 0 \
    -m autotune.worker trial --folder "$FOLDER"
