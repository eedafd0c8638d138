"""What a config.json leaves unsaid: one record per `model_type`, as the modelling code of transformers has it.

A field of ModelSpec that is the same for all models of a type is a plain value; one that the config decides is
`Key(name, default)`, the default being what transformers assumes where the key is absent. To add an architecture, add a
record; its test counts the parameters of a known model.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

from autotune.spec.model import Norm

Sliding = Literal["none", "every layer", "every other layer", "all but every n-th layer", "from max_window_layers on"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """A key of the config, and what it means to be absent (None: it must be there)."""

    name: str
    default: bool | int | str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixture:
    """Where a config says how its experts are.

    width: of one routed expert; shared_width: of all shared experts together; shared_count: how many there are, each as
    wide as a routed one; dense_layers: leading layers without experts; frequency: every how many layers are a mixture;
    dense_list: a list of the layers without experts.
    """

    num_experts: str
    experts_per_token: str
    width: str
    shared_width: str | None = None
    shared_count: str | None = None
    shared_gate: bool = False
    router_bias: bool = False
    dense_layers: str | None = None
    frequency: str | None = None
    dense_list: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Architecture:
    """One model_type. class_names: in `architectures` of a config; keys: its own names of the usual sizes.

    sizes: what transformers assumes of a size that the config leaves out; four_times_hidden: the MLP is that wide where
    the config does not say; learned_positions: the key that counts them; next_token_layers: the key that counts
    multi-token-prediction layers; source: where the record was read.
    """

    class_names: tuple[str, ...]
    keys: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    tied_embeddings: bool | Key = Key(name="tie_word_embeddings", default=False)
    gated_mlp: bool = True
    activation: Key = Key(name="hidden_act", default="silu")
    norm: Norm = "rmsnorm"
    norms_per_layer: int = 2
    qkv_bias: bool | Key = False
    attention_output_bias: bool | Key = False
    mlp_bias: bool | Key = False
    norm_bias: bool = False
    qk_norm: bool | Key = False
    qk_norm_over_heads: bool = False
    attention_sinks: bool = False
    four_times_hidden: bool = False
    learned_positions: str | None = None
    sliding: Sliding = "none"
    sliding_window: Key = Key(name="sliding_window", default=0)
    latent_attention: bool = False
    mixture: Mixture | None = None
    next_token_layers: str | None = None
    source: str


_TIED = Key(name="tie_word_embeddings", default=True)
_GPT_KEYS = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "intermediate_size": "n_inner",
    "max_position_embeddings": "n_positions",
}
_DEEPSEEK_MIXTURE = Mixture(
    num_experts="n_routed_experts",
    experts_per_token="num_experts_per_tok",
    width="moe_intermediate_size",
    shared_count="n_shared_experts",
    dense_layers="first_k_dense_replace",
    frequency="moe_layer_freq",
)


def _bias(*, default: bool) -> Key:
    return Key(name="attention_bias", default=default)


ARCHITECTURES: dict[str, Architecture] = {
    "llama": Architecture(
        class_names=("LlamaForCausalLM",),
        qkv_bias=_bias(default=False),
        attention_output_bias=_bias(default=False),
        mlp_bias=Key(name="mlp_bias", default=False),
        source="transformers, models/llama",
    ),
    "mistral": Architecture(
        class_names=("MistralForCausalLM",),
        sliding="every layer",
        sliding_window=Key(name="sliding_window", default=4096),
        source="transformers, models/mistral",
    ),
    "mixtral": Architecture(
        class_names=("MixtralForCausalLM",),
        sliding="every layer",
        mixture=Mixture(
            num_experts="num_local_experts", experts_per_token="num_experts_per_tok", width="intermediate_size"
        ),
        source="transformers, models/mixtral",
    ),
    "qwen2": Architecture(
        class_names=("Qwen2ForCausalLM",),
        qkv_bias=True,
        sliding="from max_window_layers on",
        source="transformers, models/qwen2",
    ),
    "qwen2_moe": Architecture(
        class_names=("Qwen2MoeForCausalLM",),
        qkv_bias=True,
        sliding="from max_window_layers on",
        mixture=Mixture(
            num_experts="num_experts",
            experts_per_token="num_experts_per_tok",
            width="moe_intermediate_size",
            shared_width="shared_expert_intermediate_size",
            shared_gate=True,
            frequency="decoder_sparse_step",
            dense_list="mlp_only_layers",
        ),
        source="transformers, models/qwen2_moe",
    ),
    "qwen3": Architecture(
        class_names=("Qwen3ForCausalLM",),
        sizes={"head_dim": 128},
        qkv_bias=_bias(default=False),
        attention_output_bias=_bias(default=False),
        qk_norm=True,
        sliding="from max_window_layers on",
        source="transformers, models/qwen3",
    ),
    "qwen3_moe": Architecture(
        class_names=("Qwen3MoeForCausalLM",),
        qkv_bias=_bias(default=False),
        attention_output_bias=_bias(default=False),
        qk_norm=True,
        sliding="from max_window_layers on",
        mixture=Mixture(
            num_experts="num_experts",
            experts_per_token="num_experts_per_tok",
            width="moe_intermediate_size",
            frequency="decoder_sparse_step",
            dense_list="mlp_only_layers",
        ),
        source="transformers, models/qwen3_moe",
    ),
    "deepseek_v2": Architecture(
        class_names=("DeepseekV2ForCausalLM",),
        attention_output_bias=_bias(default=False),
        latent_attention=True,
        mixture=_DEEPSEEK_MIXTURE,
        source="transformers, models/deepseek_v2",
    ),
    "deepseek_v3": Architecture(
        class_names=("DeepseekV3ForCausalLM",),
        attention_output_bias=_bias(default=False),
        latent_attention=True,
        # the bias of the router is e_score_correction_bias, one value per expert
        mixture=replace(_DEEPSEEK_MIXTURE, router_bias=True),
        next_token_layers="num_nextn_predict_layers",
        source="transformers, models/deepseek_v3",
    ),
    "gemma": Architecture(
        class_names=("GemmaForCausalLM",),
        sizes={"head_dim": 256},
        tied_embeddings=_TIED,
        activation=Key(name="hidden_act", default="gelu_pytorch_tanh"),
        qkv_bias=_bias(default=False),
        attention_output_bias=_bias(default=False),
        source="transformers, models/gemma",
    ),
    "gemma2": Architecture(
        class_names=("Gemma2ForCausalLM",),
        sizes={"head_dim": 256},
        tied_embeddings=_TIED,
        activation=Key(name="hidden_activation", default="gelu_pytorch_tanh"),
        norms_per_layer=4,
        qkv_bias=_bias(default=False),
        attention_output_bias=_bias(default=False),
        sliding="every other layer",
        sliding_window=Key(name="sliding_window", default=4096),
        source="transformers, models/gemma2",
    ),
    "gemma3_text": Architecture(
        class_names=("Gemma3ForCausalLM",),
        sizes={"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208},
        tied_embeddings=_TIED,
        activation=Key(name="hidden_activation", default="gelu_pytorch_tanh"),
        norms_per_layer=4,
        qkv_bias=_bias(default=False),
        attention_output_bias=_bias(default=False),
        qk_norm=True,
        sliding="all but every n-th layer",
        sliding_window=Key(name="sliding_window", default=4096),
        source="transformers, models/gemma3",
    ),
    "phi3": Architecture(class_names=("Phi3ForCausalLM",), sliding="every layer", source="transformers, models/phi3"),
    "gpt2": Architecture(
        class_names=("GPT2LMHeadModel",),
        keys=_GPT_KEYS,
        tied_embeddings=_TIED,
        gated_mlp=False,
        activation=Key(name="activation_function", default="gelu_new"),
        norm="layernorm",
        qkv_bias=True,
        attention_output_bias=True,
        mlp_bias=True,
        norm_bias=True,
        four_times_hidden=True,
        learned_positions="n_positions",
        source="transformers, models/gpt2",
    ),
    "gpt_neox": Architecture(
        class_names=("GPTNeoXForCausalLM",),
        gated_mlp=False,
        activation=Key(name="hidden_act", default="gelu"),
        norm="layernorm",
        qkv_bias=_bias(default=True),
        attention_output_bias=_bias(default=True),
        mlp_bias=True,
        norm_bias=True,
        source="transformers, models/gpt_neox",
    ),
    "olmo2": Architecture(
        class_names=("Olmo2ForCausalLM",),
        qkv_bias=_bias(default=False),
        attention_output_bias=_bias(default=False),
        qk_norm=True,
        qk_norm_over_heads=True,
        source="transformers, models/olmo2",
    ),
    "granite": Architecture(
        class_names=("GraniteForCausalLM",),
        qkv_bias=_bias(default=False),
        attention_output_bias=_bias(default=False),
        mlp_bias=Key(name="mlp_bias", default=False),
        source="transformers, models/granite",
    ),
    "gpt_oss": Architecture(
        class_names=("GptOssForCausalLM",),
        sizes={"head_dim": 64},
        qkv_bias=_bias(default=True),
        attention_output_bias=_bias(default=True),
        mlp_bias=True,
        attention_sinks=True,
        sliding="every other layer",
        sliding_window=Key(name="sliding_window", default=128),
        mixture=Mixture(
            num_experts="num_local_experts",
            experts_per_token="num_experts_per_tok",
            width="intermediate_size",
            router_bias=True,
        ),
        source="transformers, models/gpt_oss",
    ),
    "glm4_moe": Architecture(
        class_names=("Glm4MoeForCausalLM",),
        qkv_bias=_bias(default=False),
        qk_norm=Key(name="use_qk_norm", default=False),
        # the bias of the router is e_score_correction_bias, one value per expert
        mixture=replace(_DEEPSEEK_MIXTURE, router_bias=True),
        next_token_layers="num_nextn_predict_layers",
        source="transformers, models/glm4_moe",
    ),
}

TEXT_PARTS: tuple[str, ...] = ("text_config", "llm_config", "language_config", "thinker_config")
"""Keys under which a multimodal config holds its language model."""

TEXT_TYPES: dict[str, str] = {"gemma3": "gemma3_text"}
"""model_type of the language model inside a multimodal model_type, where that part does not say so."""

ACTIVATIONS: dict[str, Literal["silu", "gelu", "relu"]] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu",
    "gelu_fast": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "relu": "relu",
}

FOREIGN_LAYERS: dict[str, str] = {
    "hybrid_override_pattern": "Mamba layers (Nemotron-H)",
    "layers_block_type": "Mamba layers (Zamba, Bamba)",
    "attn_layer_period": "Mamba layers (Jamba)",
    "ssm_state_size": "state-space layers",
    "state_size": "state-space layers (Mamba)",
    "mamba_d_state": "Mamba layers",
    "block_types": "recurrent layers (RecurrentGemma)",
    "linear_num_value_heads": "linear attention (Qwen3-Next)",
    "linear_attn_config": "linear attention",
}
"""Keys that tell of layers which are no transformer layers; their parameters cannot be counted here."""

LAYER_TYPES: tuple[str, ...] = ("full_attention", "sliding_attention")
"""Words of `layer_types` that are understood."""
