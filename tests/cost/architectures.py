"""Public models by the numbers of their config.json, with the parameter counts that their authors publish."""

from autotune.spec.model import MlaSpec, ModelSpec, MoeSpec
from tests.examples import llama_3_8b, llama_3_70b, qwen3_30b_a3b


def _model(
    name: str, hidden: int, layers: int, heads: int, kv: int, dim: int, ffn: int, vocab: int, **rest: object
) -> ModelSpec:
    return ModelSpec(
        name=name, architecture=name, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=kv, head_dim=dim, intermediate_size=ffn, vocab_size=vocab, **rest,  # type: ignore[arg-type]
    )  # fmt: skip


LLAMA_3_405B = _model("llama-3-405b", 16384, 126, 128, 8, 128, 53248, 128256)
LLAMA_2_7B = _model("llama-2-7b", 4096, 32, 32, 32, 128, 11008, 32000)
LLAMA_32_1B = _model("llama-3.2-1b", 2048, 16, 32, 8, 64, 8192, 128256, tied_embeddings=True)
MISTRAL_7B = _model("mistral-7b", 4096, 32, 32, 8, 128, 14336, 32000)
QWEN25_7B = _model("qwen2.5-7b", 3584, 28, 28, 4, 128, 18944, 152064, qkv_bias=True)
QWEN25_05B = _model("qwen2.5-0.5b", 896, 24, 14, 2, 64, 4864, 151936, qkv_bias=True, tied_embeddings=True)
QWEN3_06B = _model("qwen3-0.6b", 1024, 28, 16, 8, 128, 3072, 151936, qk_norm=True, tied_embeddings=True)
QWEN3_8B = _model("qwen3-8b", 4096, 36, 32, 8, 128, 12288, 151936, qk_norm=True)
GEMMA_2_9B = _model(
    "gemma-2-9b", 3584, 42, 16, 8, 256, 14336, 256000, tied_embeddings=True, activation="gelu", norms_per_layer=4
)  # fmt: skip
OLMO_2_7B = _model("olmo-2-7b", 4096, 32, 32, 32, 128, 11008, 100352, qk_norm=True, qk_norm_over_heads=True)
QWEN3_235B = _model(
    "qwen3-235b-a22b", 4096, 94, 64, 4, 128, 12288, 151936, qk_norm=True,
    moe=MoeSpec(num_experts=128, experts_per_token=8, expert_intermediate_size=1536),
)  # fmt: skip
MIXTRAL_8X7B = _model(
    "mixtral-8x7b", 4096, 32, 32, 8, 128, 14336, 32000,
    moe=MoeSpec(num_experts=8, experts_per_token=2, expert_intermediate_size=14336),
)  # fmt: skip
MIXTRAL_8X22B = _model(
    "mixtral-8x22b", 6144, 56, 48, 8, 128, 16384, 32000,
    moe=MoeSpec(num_experts=8, experts_per_token=2, expert_intermediate_size=16384),
)  # fmt: skip
DEEPSEEK_V3 = _model(
    "deepseek-v3", 7168, 61, 128, 128, 192, 18432, 129280, mtp_layers=1,
    mla=MlaSpec(q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128),
    moe=MoeSpec(
        num_experts=256, experts_per_token=8, expert_intermediate_size=2048, shared_intermediate_size=2048,
        dense_layers=3, router_bias=True,
    ),
)  # fmt: skip
GPT_OSS_20B = _model(
    "gpt-oss-20b", 2880, 24, 64, 8, 64, 2880, 201088, qkv_bias=True, attention_output_bias=True, mlp_bias=True,
    attention_sinks=True, sliding_window=128, sliding_window_layers=12,
    moe=MoeSpec(num_experts=32, experts_per_token=4, expert_intermediate_size=2880, router_bias=True),
)  # fmt: skip
GPT_2 = _model(
    "gpt2", 768, 12, 12, 12, 64, 3072, 50257, learned_positions=1024, tied_embeddings=True, gated_mlp=False,
    activation="gelu", norm="layernorm", norm_bias=True, qkv_bias=True, attention_output_bias=True, mlp_bias=True,
)  # fmt: skip
GPT_2_XL = _model(
    "gpt2-xl", 1600, 48, 25, 25, 64, 6400, 50257, learned_positions=1024, tied_embeddings=True, gated_mlp=False,
    activation="gelu", norm="layernorm", norm_bias=True, qkv_bias=True, attention_output_bias=True, mlp_bias=True,
)  # fmt: skip

PUBLISHED_PARAMETERS: tuple[tuple[ModelSpec, int], ...] = (
    (llama_3_8b(), 8_030_261_248),
    (llama_3_70b(), 70_553_706_496),
    (LLAMA_3_405B, 405_853_388_800),
    (LLAMA_2_7B, 6_738_415_616),
    (LLAMA_32_1B, 1_235_814_400),
    (MISTRAL_7B, 7_241_732_096),
    (QWEN25_7B, 7_615_616_512),
    (QWEN25_05B, 494_032_768),
    (QWEN3_06B, 596_049_920),
    (QWEN3_8B, 8_190_735_360),
    (qwen3_30b_a3b(), 30_532_122_624),
    (QWEN3_235B, 235_093_634_560),
    (GEMMA_2_9B, 9_241_705_984),
    (OLMO_2_7B, 7_298_617_344),
    (MIXTRAL_8X7B, 46_702_792_704),
    (MIXTRAL_8X22B, 140_620_634_112),
    (DEEPSEEK_V3, 671_026_419_200),
    (GPT_OSS_20B, 20_914_757_184),
    (GPT_2, 124_439_808),
    (GPT_2_XL, 1_557_611_200),
)
