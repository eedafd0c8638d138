# tiny on 1x8xh100: layout tp2-shard4-z3-mbs1
# engine: torchtitan after 0.2.2 (main of 2026-08-21, b5bcd76)
# predicted: step 12.50 s, peak memory 60.0 GiB of 79.0 GiB a GPU (basis: datasheet)
# batch: 64 sequences of 4096 tokens = micro-batches of 1 · 16 a step · dp 4
# made by: autotune export run
"""A torchtitan recipe: every setting that the layout decides. Data, tokenizer and learning rate are the baseline's:
replace them for a real run.
"""

from torchtitan.models import llama3
from torchtitan.models.common import ComplexRoPE, Embedding, Linear, RMSNorm
from torchtitan.models.llama3.config_registry import llama3_debugmodel as baseline
from torchtitan.trainer import Trainer


def train() -> Trainer.Config:
    """The run."""
    config = baseline()
    config.model_spec.model = model()
    config.loss.loss_fn.global_vocab_size = 128
    config.parallelism.tensor_parallel_degree = 2
    config.parallelism.pipeline_parallel_degree = 1
    config.parallelism.data_parallel_replicate_degree = 1
    config.parallelism.data_parallel_shard_degree = 4
    config.parallelism.context_parallel_degree = 1
    config.parallelism.expert_parallel_degree = 1
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
    config.activation_checkpoint = None
    return config


def model() -> llama3.Llama3Model.Config:
    """The shape of config.json; the rotary base is Llama 3's."""
    rope = ComplexRoPE.Config(dim=8, max_context_length=4096, theta=500000)
    embedding_init = llama3._EMBEDDING_INIT
    return llama3.Llama3Model.Config(
        dim=32,
        vocab_size=128,
        enable_weight_tying=False,
        tok_embeddings=Embedding.Config(
            num_embeddings=128, embedding_dim=32, param_init=embedding_init
        ),
        norm=RMSNorm.Config(normalized_shape=32, param_init=llama3._NORM_INIT),
        lm_head=Linear.Config(
            in_features=32,
            out_features=128,
            param_init=llama3._output_linear_init(32),
        ),
        layers=llama3._build_llama3_layers(
            n_layers=4,
            dim=32,
            n_heads=4,
            n_kv_heads=2,
            hidden_dim=64,
            rope=rope,
            attn_backend="flex",
        ),
    )
