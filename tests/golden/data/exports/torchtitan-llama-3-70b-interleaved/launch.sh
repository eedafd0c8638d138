#!/usr/bin/env bash
# llama-3-70b on 64x8xh100: layout tp8-pp4-vpp5-shard16-z2-sp-mbs1-interleaved-recompute-full
# engine: torchtitan after 0.2.2 (main of 2026-08-21, b5bcd76)
# predicted: step 12.50 s, peak memory 60.0 GiB of 79.0 GiB a GPU (basis: datasheet)
# batch: 1024 sequences of 8192 tokens = micro-batches of 1 · 64 a step · dp 16
# made by: autotune export run
#SBATCH --nodes=64
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
# 64 nodes: submit this script with sbatch, or run it on every node with MASTER_ADDR set to the first one's address.
if [[ -n "${SLURM_JOB_NODELIST:-}" ]]; then
    MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
    SRUN=(srun --ntasks-per-node=1)
fi
RENDEZVOUS=(
    --rdzv-backend c10d
    --rdzv-endpoint "${MASTER_ADDR:?set it to the address of the first node, or submit with sbatch}:${MASTER_PORT:-29500}"
    --rdzv-id "${SLURM_JOB_ID:-autotune}"
)

"${SRUN[@]}" torchrun \
    --nnodes 64 --nproc-per-node 8 "${RENDEZVOUS[@]}" \
    -m torchtitan.train --module recipe --config train "$@"
