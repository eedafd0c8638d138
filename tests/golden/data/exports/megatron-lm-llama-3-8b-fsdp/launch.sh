#!/usr/bin/env bash
# llama-3-8b on 1x8xh100: layout tp2-rep2-shard2-z3-mbs1-recompute-full
# engine: megatron-lm core_v0.16 – core_v0.20
# predicted: step 12.50 s, peak memory 60.0 GiB of 79.0 GiB a GPU (basis: datasheet)
# batch: 64 sequences of 4096 tokens = micro-batches of 1 · 16 a step · dp 4
# made by: autotune export run
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
set -euo pipefail

cd "${MEGATRON_DIR:?set it to a checkout of NVIDIA/Megatron-LM}"

unset CUDA_DEVICE_MAX_CONNECTIONS # Megatron-FSDP refuses the 1 that other layouts need
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export OMP_NUM_THREADS=1
# The site's own, where its network needs them:
# export NCCL_SOCKET_IFNAME=
# export NCCL_IB_HCA=

SRUN=()
RENDEZVOUS=(--standalone)

LAYOUT=(
    --tensor-model-parallel-size 2
    --pipeline-model-parallel-size 1
    --context-parallel-size 1
    --expert-model-parallel-size 1
    --expert-tensor-parallel-size 1
    --micro-batch-size 1
    --num-virtual-stages-per-pipeline-rank 1
    --use-distributed-optimizer
    --use-megatron-fsdp
    --ckpt-format fsdp_dtensor
    --no-gradient-accumulation-fusion
    --data-parallel-sharding-strategy optim_grads_params
    --init-model-with-meta-device
    --recompute-granularity full
    --recompute-method uniform
    --recompute-num-layers 1
    --num-distributed-optimizer-instances 2
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
    --num-layers 32
    --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
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
    --nnodes 1 --nproc-per-node 8 "${RENDEZVOUS[@]}" \
    pretrain_gpt.py "${LAYOUT[@]}" "${BATCH[@]}" "${MODEL[@]}" "${TRAINING[@]}" "${DATA[@]}" "$@"
