"""torchtitan: its rules by hand, and what a recipe sets when it is run against stand-ins of torchtitan's modules."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from autotune.engines.protocol import LaunchFiles
from autotune.engines.torchtitan import TORCHTITAN
from autotune.engines.torchtitan_models import SHIPPED, shipped
from autotune.engines.torchtitan_recipe import stage_modules
from autotune.space.rules import broken_rules
from autotune.spec.layout import Layout, LayoutTable
from autotune.testing import EngineContract
from tests.engines.test_megatron_lm import PREDICTION, with_model, with_workload
from tests.examples import llama_3_8b, llama_3_70b, problem, qwen3_30b_a3b, tiny_model


class TestTorchtitanContract(EngineContract):
    def engine(self):
        return TORCHTITAN

    def variations(self):
        one, two = problem(), problem(nodes=2)
        plain = Layout(tp=2, dp_replicate=4)
        return {
            "tp": (one, plain, Layout(tp=4, dp_replicate=2)),
            "pp": (one, Layout(tp=2, pp=2, dp_replicate=2), Layout(tp=2, pp=4)),
            "vpp": (
                one,
                Layout(pp=2, vpp=2, dp_replicate=4, schedule="interleaved"),
                Layout(pp=2, vpp=4, dp_replicate=4, schedule="interleaved"),
            ),
            "dp_replicate": (two, Layout(dp_replicate=2, dp_shard=8, zero_stage=3), Layout(dp_shard=16, zero_stage=3)),
            "dp_shard": (one, Layout(dp_shard=8, zero_stage=3), Layout(dp_shard=4, zero_stage=3)),
            "cp": (one, Layout(cp=2, dp_replicate=4), Layout(cp=4, dp_replicate=2)),
            "ep": (
                problem(model=qwen3_30b_a3b()),
                Layout(ep=2, dp_shard=8, zero_stage=3),
                Layout(ep=4, dp_shard=8, zero_stage=3),
            ),
            "zero_stage": (one, Layout(dp_shard=8, zero_stage=2), Layout(dp_shard=8, zero_stage=3)),
            "sequence_parallel": (one, plain, replace(plain, sequence_parallel=True)),
            "micro_batch_size": (one, plain, replace(plain, micro_batch_size=2)),
            "schedule": (one, Layout(pp=2, dp_replicate=4), Layout(pp=2, dp_replicate=4, schedule="gpipe")),
            "recompute": (one, plain, replace(plain, recompute="full")),
        }

    def fixed_axes(self):
        return frozenset({"etp"})

    def broken(self):
        one = problem()
        experts = problem(model=qwen3_30b_a3b())
        pipeline = Layout(pp=2, dp_replicate=4)
        return {
            "schedule-of-engine": (one, Layout(pp=2, vpp=2, dp_replicate=4, schedule="v-half")),
            "tp-divides-kv-heads": (problem(nodes=2), Layout(tp=16)),
            "micro-batches-fill-stages": (problem(global_batch_size=4), pipeline),
            "fsdp2-shards-gradients": (one, Layout(dp_shard=8, zero_stage=1)),
            "selective-recompute-needs-one-backward": (
                one,
                replace(pipeline, vpp=2, schedule="dualpipev", recompute="selective"),
            ),
            "tied-embeddings-need-one-stage": (with_model(one, tied_embeddings=True), pipeline),
            "experts-are-not-cut": (experts, Layout(ep=2, etp=2, dp_shard=8, zero_stage=3)),
            "replicas-hold-experts": (experts, Layout(ep=8, dp_replicate=2, dp_shard=4, zero_stage=3)),
            "micro-batch-tokens-divide": (problem(sequence_length=100), Layout(dp_replicate=8)),
            "model-can-be-described": (with_model(one, qkv_bias=True), Layout(dp_replicate=8)),
            "shape-can-be-built": (with_model(one, head_dim=96), Layout(dp_replicate=8)),
            "training-can-be-said": (with_workload(one, optimizer="sgd"), Layout(dp_replicate=8)),
        }

    def environment(self, folder: Path):
        return {"TORCHTITAN_DIR": str(folder)}


def refused(question, layout):
    return [reason.code for reason in broken_rules(LayoutTable.of([layout]), 0, question, TORCHTITAN.rules)]


@pytest.fixture
def titan(monkeypatch) -> None:
    """Stand-ins: a baseline returns a bare config, a policy or a model its own name and what it was given."""

    def baseline() -> SimpleNamespace:
        spec = SimpleNamespace(model=None)
        loss = SimpleNamespace(loss_fn=SimpleNamespace())
        return SimpleNamespace(
            parallelism=SimpleNamespace(), training=SimpleNamespace(), model_spec=spec, loss=loss
        )  # fmt: skip

    def policy(name: str) -> SimpleNamespace:
        return SimpleNamespace(Config=lambda **given: (name, given))

    def module(name: str, **names: object) -> None:
        found = ModuleType(name)
        found.__dict__.update(names)
        monkeypatch.setitem(sys.modules, name, found)

    baselines = {entry.baseline: baseline for entry in SHIPPED.values()}
    registry = {"model_registry": lambda flavor: f"registry:{flavor}"}
    parts = {name: policy(name) for name in ("ComplexRoPE", "CosSinRoPE", "Embedding", "Linear", "RMSNorm")}
    llama = {
        "Llama3Model": policy("Llama3Model"), "_build_llama3_layers": lambda **given: given, "_NORM_INIT": "norm",
        "_EMBEDDING_INIT": "embedding", "_EMBEDDING_SKIP_INIT": "skip", "_output_linear_init": lambda dim: dim,
    }  # fmt: skip
    qwen = {
        "Qwen3Model": policy("Qwen3Model"), "_build_qwen3_layers": lambda **given: given,
        "_qwen3_norm": lambda dim: dim, "_EMBEDDING_INIT": "embedding", "_EMBEDDING_SKIP_INIT": "skip",
        "_LINEAR_INIT": "linear",
    }  # fmt: skip
    for name in ("torchtitan", "torchtitan.distributed"):
        module(name)
    module("torchtitan.trainer", Trainer=SimpleNamespace(Config=object))
    module("torchtitan.distributed.activation_checkpoint", FullAC=policy("FullAC"), SelectiveAC=policy("SelectiveAC"))
    module("torchtitan.models.common", **parts)
    for family, names in (("llama3", llama), ("qwen3", qwen)):
        module(f"torchtitan.models.{family}", **registry, **names)
        module(f"torchtitan.models.{family}.config_registry", **baselines | {f"{family}_debugmodel": baseline})
    module(
        "torchtitan.models",
        llama3=sys.modules["torchtitan.models.llama3"],
        qwen3=sys.modules["torchtitan.models.qwen3"],
    )


def recipe_of(files: LaunchFiles) -> SimpleNamespace:
    (text,) = [text for path, text in files.items() if path.suffix == ".py"]
    names: dict[str, object] = {}
    exec(compile(text, "recipe.py", "exec"), names)
    config = names["train"]()
    assert isinstance(config, SimpleNamespace)
    return config


@pytest.mark.usefixtures("titan")
def test_a_recipe_sets_every_degree_and_three_batch_numbers_that_agree():
    # 1024 sequences = 1 a micro-batch · 64 micro-batches a step · 16 data-parallel ranks, of 8192 tokens each
    question = problem(model=llama_3_70b(), nodes=64, sequence_length=8192, global_batch_size=1024)
    layout = Layout(
        tp=8, pp=4, vpp=5, dp_shard=16, zero_stage=2, schedule="interleaved", sequence_parallel=True, recompute="full"
    )

    config = recipe_of(TORCHTITAN.write(layout, question, PREDICTION))

    assert config.model_spec == "registry:70B"
    assert config.activation_checkpoint == ("FullAC", {})
    parallelism = vars(config.parallelism)
    assert parallelism.pop("module_fqns_per_model_part") == stage_modules(layout, 80)
    assert parallelism == {
        "tensor_parallel_degree": 8,
        "pipeline_parallel_degree": 4,
        "data_parallel_replicate_degree": 1,
        "data_parallel_shard_degree": 16,
        "context_parallel_degree": 1,
        "expert_parallel_degree": 1,
        "enable_sequence_parallel": True,
        "fsdp_reshard_after_forward": "never",
        "pipeline_parallel_schedule": "Interleaved1F1B",
        "num_pp_microbatches": 64,
    }
    training = config.training
    assert training.num_tokens_per_microbatch_per_dp_rank * 64 * 16 == training.num_tokens_per_train_step == 1024 * 8192
    assert training.max_context_length == 8192
    assert training.mixed_precision_param == "bfloat16"


@pytest.mark.usefixtures("titan")
def test_without_a_pipeline_there_are_no_stages_and_accumulation_follows_from_the_batch():
    layout = Layout(dp_shard=8, zero_stage=3)

    config = recipe_of(TORCHTITAN.write(layout, problem(), PREDICTION))

    assert config.parallelism.module_fqns_per_model_part is None
    assert config.parallelism.num_pp_microbatches == 1
    assert config.parallelism.fsdp_reshard_after_forward == "always"
    assert config.activation_checkpoint is None


@pytest.mark.usefixtures("titan")
def test_a_shape_that_torchtitan_does_not_ship_is_built():
    config = recipe_of(TORCHTITAN.write(Layout(dp_replicate=8), problem(model=tiny_model()), PREDICTION))

    kind, given = config.model_spec.model
    assert kind == "Llama3Model"
    assert (given["dim"], given["vocab_size"], given["enable_weight_tying"]) == (32, 128, False)
    assert {key: given["layers"][key] for key in ("n_layers", "n_heads", "n_kv_heads", "hidden_dim")} == {
        "n_layers": 4, "n_heads": 4, "n_kv_heads": 2, "hidden_dim": 64,
    }  # fmt: skip
    assert config.loss.loss_fn.global_vocab_size == 128


@pytest.mark.usefixtures("titan")
def test_norms_of_query_and_key_make_it_a_qwen3_with_its_own_head_dim():
    model = replace(tiny_model(), qk_norm=True, head_dim=16, tied_embeddings=True)

    kind, given = recipe_of(TORCHTITAN.write(Layout(dp_replicate=8), problem(model=model), PREDICTION)).model_spec.model

    assert (kind, given["layers"]["head_dim"], given["enable_weight_tying"]) == ("Qwen3Model", 16, True)
    assert given["tok_embeddings"][1]["param_init"] == "skip"


def test_shipped_sizes_are_found_by_shape_whatever_the_name():
    assert shipped(replace(llama_3_8b(), name="mine")).flavor == "8B"
    assert shipped(qwen3_30b_a3b()).flavor == "30B-A3B"
    assert shipped(replace(llama_3_8b(), qk_norm=True)) is None
    assert shipped(tiny_model()) is None


def test_stages_name_embedding_layers_norm_and_head_once():
    # 5 layers over 2 ranks: ceil(5/2) = 3 each, one missing, taken from the last rank, which has the head
    assert stage_modules(Layout(pp=2), 5) == [
        ["tok_embeddings", "layers.0", "layers.1", "layers.2"],
        ["layers.3", "layers.4", "norm", "lm_head"],
    ]


@pytest.mark.parametrize(("sequences", "codes"), [(4, []), (3, ["micro-batches-fill-stages"])])
def test_1f1b_with_fewer_micro_batches_than_ranks_hangs(sequences, codes):
    question = problem(gpus_per_node=4, global_batch_size=sequences)

    assert refused(question, Layout(pp=4)) == codes


def test_two_kv_heads_cannot_be_cut_in_four():
    question = problem(model=replace(llama_3_8b(), num_key_value_heads=2))

    assert refused(question, Layout(tp=4, dp_replicate=2)) == ["tp-divides-kv-heads"]
    assert refused(question, Layout(tp=2, dp_replicate=4)) == []


def test_expert_parallelism_takes_its_ranks_from_shards_context_and_tensor():
    # dp_shard·cp·tp = 2·2·2 = 8 of 16 GPUs
    question = problem(model=qwen3_30b_a3b(), nodes=2)
    layout = Layout(tp=2, cp=2, dp_replicate=2, dp_shard=2, zero_stage=3, sequence_parallel=True)

    assert refused(question, replace(layout, ep=8)) == []
    assert refused(question, replace(layout, ep=16)) == ["replicas-hold-experts"]


def test_tokens_of_a_micro_batch_are_cut_for_context_tensor_and_loss():
    # cp 2 and tp 2 with sequence parallel: the loss cuts a rank's tokens/4 in 8, so a multiple of 32
    layout = Layout(tp=2, cp=2, dp_replicate=2, sequence_parallel=True)

    assert refused(problem(sequence_length=96), layout) == []
    assert refused(problem(sequence_length=80), layout) == ["micro-batch-tokens-divide"]
    assert refused(problem(sequence_length=80), replace(layout, micro_batch_size=2)) == []
