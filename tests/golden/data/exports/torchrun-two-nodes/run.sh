#!/usr/bin/env bash
# tiny on 2x8xh100: layout pp2-vpp2-shard8-z3-mbs1-zb-v
# engine: torch 2.11 – 2.13
# predicted: step 12.50 s, peak memory 60.0 GiB of 79.0 GiB a GPU (basis: datasheet)
# batch: 64 sequences of 4096 tokens = micro-batches of 1 · 8 a step · dp 8
# made by: autotune export run
# PYTHON: the interpreter that has torch and autotune; the result is written to result.json beside this script.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
set -euo pipefail

PYTHON="${PYTHON:-python3}"
# Submit it from its own folder, which all nodes must see.
FOLDER=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ -e "$FOLDER/trial.json" ]] || FOLDER="${SLURM_SUBMIT_DIR:?trial.json is not beside this script}"
"$PYTHON" -c 'import autotune, torch' || {
    echo "$PYTHON has not both torch and autotune: activate their environment, or set PYTHON" >&2
    exit 3
}

export PYTORCH_ALLOC_CONF=expandable_segments:True
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
# The site's own, where its network needs them:
# export NCCL_SOCKET_IFNAME=
# export NCCL_IB_HCA=

SRUN=()
# 2 nodes: submit this script with sbatch, or run it on every node with MASTER_ADDR set to the first one's address.
if [[ -n "${SLURM_JOB_NODELIST:-}" ]]; then
    MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
    SRUN=(srun --ntasks-per-node=1)
fi
RENDEZVOUS=(
    --rdzv-backend c10d
    --rdzv-endpoint "${MASTER_ADDR:?set it to the address of the first node, or submit with sbatch}:${MASTER_PORT:-29500}"
    --rdzv-id "${SLURM_JOB_ID:-autotune}"
)

"${SRUN[@]}" "$PYTHON" -m torch.distributed.run \
    --nnodes 2 --nproc-per-node 8 "${RENDEZVOUS[@]}" --max-restarts 0 \
    -m autotune.worker trial --folder "$FOLDER"
