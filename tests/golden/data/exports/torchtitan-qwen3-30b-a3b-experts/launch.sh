#!/usr/bin/env bash
# qwen3-30b-a3b on 1x8xh100: layout shard8-ep8-z3-mbs1-recompute-selective
# engine: torchtitan after 0.2.2 (main of 2026-08-21, b5bcd76)
# predicted: step 12.50 s, peak memory 60.0 GiB of 79.0 GiB a GPU (basis: datasheet)
# batch: 64 sequences of 4096 tokens = micro-batches of 1 · 8 a step · dp 8
# made by: autotune export run
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
set -euo pipefail

# Submit it from its own folder, where recipe.py is.
FOLDER=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ -e "$FOLDER/recipe.py" ]] || FOLDER="${SLURM_SUBMIT_DIR:?recipe.py is not beside this script}"
export PYTHONPATH="$FOLDER${PYTHONPATH:+:$PYTHONPATH}"
cd "${TORCHTITAN_DIR:?set it to a checkout of pytorch/torchtitan}"

export PYTORCH_ALLOC_CONF=expandable_segments:True
export OMP_NUM_THREADS=1
# The site's own, where its network needs them:
# export NCCL_SOCKET_IFNAME=
# export NCCL_IB_HCA=

SRUN=()
RENDEZVOUS=(--standalone)

"${SRUN[@]}" torchrun \
    --nnodes 1 --nproc-per-node 8 "${RENDEZVOUS[@]}" \
    -m torchtitan.train --module recipe --config train "$@"
