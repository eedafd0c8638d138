# qwen3-30b-a3b on 1x8xh100: layout shard8-ep8-z3-mbs1-recompute-selective
# engine: torchtitan after 0.2.2 (main of 2026-08-21, b5bcd76)
# predicted: step 12.50 s, peak memory 60.0 GiB of 79.0 GiB a GPU (basis: datasheet)
# batch: 64 sequences of 4096 tokens = micro-batches of 1 · 8 a step · dp 8
# made by: autotune export run
"""A torchtitan recipe: every setting that the layout decides. Data, tokenizer and learning rate are the baseline's:
replace them for a real run.
"""

from torchtitan.distributed.activation_checkpoint import SelectiveAC
from torchtitan.models.qwen3 import model_registry
from torchtitan.models.qwen3.config_registry import qwen3_30b_a3b as baseline
from torchtitan.trainer import Trainer


def train() -> Trainer.Config:
    """The run."""
    config = baseline()
    config.model_spec = model_registry('30B-A3B')
    config.parallelism.tensor_parallel_degree = 1
    config.parallelism.pipeline_parallel_degree = 1
    config.parallelism.data_parallel_replicate_degree = 1
    config.parallelism.data_parallel_shard_degree = 8
    config.parallelism.context_parallel_degree = 1
    config.parallelism.expert_parallel_degree = 8
    config.parallelism.enable_sequence_parallel = False
    config.parallelism.fsdp_reshard_after_forward = 'always'
    config.parallelism.pipeline_parallel_schedule = '1F1B'
    config.parallelism.num_pp_microbatches = 1
    config.training.max_context_length = 4096
    config.training.num_tokens_per_microbatch_per_dp_rank = 4096
    config.training.num_tokens_per_train_step = 262144
    config.training.dtype = 'float32'
    config.training.mixed_precision_param = 'bfloat16'
    config.training.mixed_precision_reduce = 'float32'
    config.training.disable_cuda_graphs = True
    config.parallelism.module_fqns_per_model_part = None
    config.activation_checkpoint = SelectiveAC.Config()
    return config
