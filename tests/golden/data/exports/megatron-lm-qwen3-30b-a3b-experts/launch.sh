#!/usr/bin/env bash
# qwen3-30b-a3b on 2x8xh100: layout tp2-shard8-ep8-z1-sp-mbs1
# engine: megatron-lm core_v0.16 – core_v0.20
# predicted: step 12.50 s, peak memory 60.0 GiB of 79.0 GiB a GPU (basis: datasheet)
# batch: 64 sequences of 4096 tokens = micro-batches of 1 · 8 a step · dp 8
# made by: autotune export run
#SBATCH --nodes=2
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

LAYOUT=(
    --tensor-model-parallel-size 2
    --pipeline-model-parallel-size 1
    --context-parallel-size 1
    --expert-model-parallel-size 8
    --expert-tensor-parallel-size 1
    --micro-batch-size 1
    --num-virtual-stages-per-pipeline-rank 1
    --sequence-parallel
    --use-distributed-optimizer
    --num-distributed-optimizer-instances 1
    --overlap-param-gather
    --overlap-grad-reduce
)

BATCH=(
    --global-batch-size 64
    --seq-length 4096
    --optimizer adam
    --attention-backend fused
    --bf16
)

MODEL=(
    --num-layers 48
    --hidden-size 2048
    --ffn-hidden-size 6144
    --num-attention-heads 32
    --normalization RMSNorm
    --max-position-embeddings 40960
    --position-embedding-type rope
    --attention-dropout 0.0
    --hidden-dropout 0.0
    --swiglu
    --disable-bias-linear
    --qk-layernorm
    --untie-embeddings-and-output-weights
    --kv-channels 128
    --group-query-attention
    --num-query-groups 4
    --num-experts 128
    --moe-router-topk 8
    --moe-ffn-hidden-size 768
    --moe-layer-freq '[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]'
    --moe-grouped-gemm
    --moe-token-dispatcher-type alltoall
    --moe-router-load-balancing-type aux_loss
    --moe-aux-loss-coeff 1e-3
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
    --vocab-size 151935
)

"${SRUN[@]}" torchrun \
    --nnodes 2 --nproc-per-node 8 "${RENDEZVOUS[@]}" \
    pretrain_gpt.py "${LAYOUT[@]}" "${BATCH[@]}" "${MODEL[@]}" "${TRAINING[@]}" "${DATA[@]}" "$@"
