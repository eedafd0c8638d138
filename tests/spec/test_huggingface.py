import json

import pytest

from autotune.errors import InputError
from autotune.spec.architectures import ARCHITECTURES
from autotune.spec.huggingface import load_model, model_names, read_config
from autotune.spec.model import MlaSpec, MoeSpec
from tests.examples import llama_3_8b, llama_3_70b, qwen3_30b_a3b
from tests.spec.counting import count_parameters

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "vocab_size": 100,
}


def read(config, **changes):
    return read_config({**config, **changes}, where="config.json", name="mine")


def messages(error):
    return {fault.key: fault.message for fault in error.value.faults}


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # sums of the tensor shapes that the model cards' safetensors list, without multi-token prediction
        ("llama-2-7b", 6_738_415_616),
        ("llama-2-13b", 13_015_864_320),
        ("llama-2-70b", 68_976_648_192),
        ("llama-3-8b", 8_030_261_248),
        ("llama-3-70b", 70_553_706_496),
        ("llama-3-405b", 405_853_388_800),
        ("llama-3.2-1b", 1_235_814_400),
        ("mistral-7b", 7_241_732_096),
        ("mixtral-8x7b", 46_702_792_704),
        ("qwen2.5-7b", 7_615_616_512),
        ("qwen3-8b", 8_190_735_360),
        ("qwen3-30b-a3b", 30_532_122_624),
        ("qwen3-235b-a22b", 235_093_634_560),
        ("deepseek-v3", 671_026_419_200),
        ("gpt-oss-20b", 20_914_757_184),
        ("gpt-oss-120b", 116_829_156_672),
        ("gemma-2-9b", 9_241_705_984),
        ("gpt2", 124_439_808),
    ],
)
def test_a_catalog_model_has_exactly_its_published_parameters(name, parameters):
    assert count_parameters(load_model(name)) == parameters


def test_the_demo_models_have_five_million_parameters():
    # a layer: q and o 2·256·256, k and v 2·256·128, MLP 3·256·1024, norms 2·256 = 983,552; times 4 = 3,934,208;
    # an embedding of 2048·256 = 524,288, twice where the head is not tied; the last norm 256
    assert count_parameters(load_model("demo")) == 3_934_208 + 2 * 524_288 + 256
    assert count_parameters(load_model("demo-tied")) == 3_934_208 + 524_288 + 256
    assert load_model("demo-tied").tied_embeddings


@pytest.mark.parametrize("expected", [llama_3_8b(), llama_3_70b(), qwen3_30b_a3b()])
def test_the_catalog_agrees_with_models_written_by_hand(expected):
    got = load_model(expected.name)

    assert got.source.startswith("https://huggingface.co/")
    assert {**_fields(got), "source": ""} == {**_fields(expected), "source": ""}


def test_every_model_of_the_catalog_says_where_it_comes_from():
    for name in model_names():
        model = load_model(name)
        assert model.name == name
        assert model.source


def test_deepseek_v3_has_latent_attention_shared_experts_dense_layers_and_a_prediction_layer():
    got = load_model("deepseek-v3")

    assert got.mla == MlaSpec(
        q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128
    )
    assert got.moe == MoeSpec(
        num_experts=256, experts_per_token=8, expert_intermediate_size=2048, shared_intermediate_size=2048,
        router_bias=True, dense_layers=3,
    )  # fmt: skip
    assert got.mtp_layers == 1


def test_gpt2_is_read_through_its_own_key_names():
    got = load_model("gpt2")

    assert (got.hidden_size, got.num_hidden_layers, got.num_attention_heads) == (768, 12, 12)
    assert got.intermediate_size == 4 * 768
    assert got.learned_positions == 1024
    assert (got.norm, got.activation, got.gated_mlp) == ("layernorm", "gelu", False)
    assert got.tied_embeddings
    assert got.qkv_bias
    assert got.mlp_bias
    assert got.norm_bias


def test_a_missing_or_null_head_dim_is_the_hidden_size_by_heads_and_missing_kv_heads_are_the_heads():
    # 64 / 8 = 8
    assert read(LLAMA).head_dim == 8
    assert read(LLAMA, head_dim=None).head_dim == 8
    assert read(LLAMA, head_dim=16).head_dim == 16
    assert read(LLAMA).num_key_value_heads == 8
    assert read(LLAMA, num_key_value_heads=2).num_key_value_heads == 2


def test_gpt_oss_keeps_a_head_width_that_is_not_hidden_by_heads():
    # 2880 / 64 = 45, the config says 64
    assert load_model("gpt-oss-20b").head_dim == 64


def test_an_architecture_decides_what_the_config_leaves_out():
    gemma = {**LLAMA, "model_type": "gemma2", "head_dim": 8}

    assert read(gemma).tied_embeddings
    assert read(gemma).norms_per_layer == 4
    assert read(gemma).sliding_window_layers == 2
    assert not read(gemma, tie_word_embeddings=False).tied_embeddings
    assert not read(LLAMA).tied_embeddings
    assert read({**LLAMA, "model_type": "qwen2"}).qkv_bias
    assert not read(LLAMA).qkv_bias
    assert read(LLAMA, attention_bias=True).attention_output_bias
    assert read({**LLAMA, "model_type": "olmo2"}).qk_norm_over_heads


def test_windows_follow_the_rule_of_the_architecture():
    # mistral: all, unless null; gemma3: five of six (12 layers: 10); qwen: those from max_window_layers on
    mistral = {**LLAMA, "model_type": "mistral"}
    gemma3 = {**LLAMA, "model_type": "gemma3_text", "num_hidden_layers": 12, "num_key_value_heads": 4}
    qwen = {**LLAMA, "model_type": "qwen2", "sliding_window": 64, "max_window_layers": 3}

    assert read(mistral).sliding_window_layers == 4
    assert read(mistral, sliding_window=None).sliding_window == 0
    assert read(gemma3).sliding_window_layers == 10
    assert read(gemma3, layer_types=["sliding_attention"] * 4 + ["full_attention"] * 8).sliding_window_layers == 4
    assert read(qwen).sliding_window_layers == 0
    assert read(qwen, use_sliding_window=True).sliding_window_layers == 1


def test_qwen_moe_reads_shared_experts_and_dense_leading_layers():
    qwen = {
        **LLAMA, "model_type": "qwen2_moe", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 128, "mlp_only_layers": [0], "decoder_sparse_step": 1,
    }  # fmt: skip

    assert read(qwen).moe == MoeSpec(
        num_experts=8, experts_per_token=2, expert_intermediate_size=32, shared_intermediate_size=128,
        shared_expert_gate=True, dense_layers=1,
    )  # fmt: skip
    with pytest.raises(InputError, match=r"mlp_only_layers: \[2\] is not a list of leading layers"):
        read(qwen, mlp_only_layers=[2])


def test_glm4_moe_reads_query_norms_and_prediction_layers():
    glm = {
        **LLAMA, "model_type": "glm4_moe", "attention_bias": True, "use_qk_norm": True, "n_routed_experts": 8,
        "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_shared_experts": 2, "first_k_dense_replace": 1,
        "num_nextn_predict_layers": 1,
    }  # fmt: skip

    got = read(glm)

    # two shared experts of 32
    assert got.moe is not None
    assert got.moe.shared_intermediate_size == 64
    assert (got.qkv_bias, got.attention_output_bias, got.qk_norm, got.mtp_layers) == (True, False, True, 1)


def test_a_multimodal_config_gives_its_language_model_and_says_so():
    text = {key: value for key, value in LLAMA.items() if key not in ("architectures", "model_type")}
    whole = {"model_type": "gemma3", "tie_word_embeddings": False, "text_config": text, "vision_config": {"x": 1}}

    got = read_config(whole, where="config.json", name="mine")

    assert got.architecture == "Gemma3ForCausalLM"
    assert got.hidden_size == 64
    assert not got.tied_embeddings
    assert "text_config alone" in got.source


def test_the_class_name_decides_where_there_is_no_model_type():
    assert read(LLAMA, model_type=None).architecture == "LlamaForCausalLM"


def test_a_folder_and_a_file_are_read_under_the_name_of_the_folder(tmp_path):
    folder = tmp_path / "My-Model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    (folder / "small.json").write_text(json.dumps(LLAMA), encoding="utf-8")

    assert load_model(str(folder)).name == "My-Model"
    assert load_model(str(folder / "config.json")).name == "My-Model"
    assert load_model(str(folder / "small.json")).name == "small"


def test_an_unknown_name_is_refused_with_the_nearest_and_the_way_out():
    with pytest.raises(InputError, match=r"did you mean 'llama-3-70b'\?\).*or give the path of a Hugging Face"):
        load_model("lama-3-70b")


def test_an_unknown_architecture_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="the architecture 'retnet' is not known; known: llama, mistral") as error:
        read(LLAMA, model_type="retnet")

    assert set(messages(error)) == {"model_type"}
    assert all(kind in str(error.value) for kind in ARCHITECTURES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "nemotron_h", "hybrid_override_pattern": "M-M*"}, "Mamba layers"),
        ({"hybrid_override_pattern": "M-M*"}, "Mamba layers"),
        ({"layer_types": ["linear_attention"] * 4}, "'linear_attention' is a kind of layer that is not known"),
        ({"is_encoder_decoder": True}, "encoder-decoder models cannot be planned"),
    ],
)
def test_layers_of_another_kind_are_refused_by_name(changes, message):
    with pytest.raises(InputError, match=message):
        read(LLAMA, **changes)


def test_all_faults_of_a_config_are_reported_at_once():
    config = {key: value for key, value in LLAMA.items() if key != "hidden_size"}

    with pytest.raises(InputError) as error:
        read(config, hiden_size=64, vocab_size=True, num_hidden_layers=-4, intermediate_size="96", hidden_act="snake")

    found = messages(error)
    assert set(found) == {"hidden_size", "vocab_size", "num_hidden_layers", "intermediate_size", "hidden_act"}
    assert "the file has 'hiden_size', did you mean 'hidden_size'?" in found["hidden_size"]
    assert found["vocab_size"] == "is true or false, True; it must be a whole number"
    assert found["num_hidden_layers"] == "-4 is not positive; give a whole number of at least 1"


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"num_key_value_heads": 3}, "num_key_value_heads"),
        ({"hidden_size": 65}, "head_dim"),
        ({"num_key_value_heads": [1, 2]}, "num_key_value_heads"),
        ({"hidden_size": 64.0}, "hidden_size"),
        ({"vocab_size": 10**30}, "vocab_size"),
    ],
)
def test_sizes_that_do_not_fit_together_are_refused(changes, key):
    with pytest.raises(InputError) as error:
        read(LLAMA, **changes)

    assert set(messages(error)) == {key}


def test_more_experts_a_token_than_experts_are_refused():
    with pytest.raises(InputError, match=r"num_experts_per_tok: 9 is more than the 8 experts; give at most 8"):
        read({**LLAMA, "model_type": "mixtral"}, num_local_experts=8, num_experts_per_tok=9)


@pytest.mark.parametrize("data", [None, [], "llama", 3, {}])
def test_what_is_no_config_is_an_input_error(data):
    with pytest.raises(InputError):
        read_config(data, where="config.json", name="mine")


def _fields(model):
    return {name: getattr(model, name) for name in type(model).__slots__}
