#!/usr/bin/env bash
# llama-3-70b on 64x8xh100: layout tp8-pp4-vpp5-shard16-z1-sp-mbs1-interleaved-recompute-selective
# engine: megatron-lm core_v0.16 – core_v0.20
# predicted: step 12.50 s, peak memory 60.0 GiB of 79.0 GiB a GPU (basis: datasheet)
# batch: 1024 sequences of 8192 tokens = micro-batches of 1 · 64 a step · dp 16
# made by: autotune export run
#SBATCH --nodes=64
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
set -euo pipefail

cd "${MEGATRON_DIR:?set it to a checkout of NVIDIA/Megatron-LM}"

export CUDA_DEVICE_MAX_CONNECTIONS=1
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
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

LAYOUT=(
    --tensor-model-parallel-size 8
    --pipeline-model-parallel-size 4
    --context-parallel-size 1
    --expert-model-parallel-size 1
    --expert-tensor-parallel-size 1
    --micro-batch-size 1
    --num-virtual-stages-per-pipeline-rank 5
    --sequence-parallel
    --use-distributed-optimizer
    --recompute-granularity selective
    --recompute-modules core_attn
    --num-distributed-optimizer-instances 1
    --overlap-param-gather
    --overlap-grad-reduce
)

BATCH=(
    --global-batch-size 1024
    --seq-length 8192
    --optimizer adam
    --attention-backend fused
    --bf16
)

MODEL=(
    --num-layers 80
    --hidden-size 8192
    --ffn-hidden-size 28672
    --num-attention-heads 64
    --normalization RMSNorm
    --max-position-embeddings 8192
    --position-embedding-type rope
    --attention-dropout 0.0
    --hidden-dropout 0.0
    --swiglu
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --kv-channels 128
    --group-query-attention
    --num-query-groups 8
)

# Not the tuner's choice: set TRAINING and DATA for a real run. As it stands, the layout trains on made-up tokens.
TRAINING=(
    --use-mcore-models
    --train-iters "${TRAIN_ITERS:-20}"
    --lr 1e-4
    --min-lr 1e-5
    --lr-decay-style cosine
    --clip-grad 1.0
    --eval-iters 0
    --log-interval 1
    --log-throughput
    --rotary-base "${ROTARY_BASE:-10000}"
)
# Up to core_v0.18 the NullTokenizer adds an end token, so it is told one less; padding makes both the same.
DATA=(
    --mock-data
    --tokenizer-type NullTokenizer
    --vocab-size 128255
)

"${SRUN[@]}" torchrun \
    --nnodes 64 --nproc-per-node 8 "${RENDEZVOUS[@]}" \
    pretrain_gpt.py "${LAYOUT[@]}" "${BATCH[@]}" "${MODEL[@]}" "${TRAINING[@]}" "${DATA[@]}" "$@"
