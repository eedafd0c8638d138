import csv

import pytest

from autotune.accuracy.data import shipped_assumptions, shipped_files
from autotune.cost.parameters import total_parameters
from autotune.errors import InputError
from autotune.spec.layout import Layout
from autotune.spec.measured import MeasuredRun, MemoryKind, SkippedRun, read_runs
from autotune.spec.measured_row import Assumed
from autotune.units import GB, GIB
from tests.accuracy.runs import ROW, csv_of, runs_of

GPT = {
    "model": "gpt-22B", "hidden": "6144", "layers": "48", "heads": "64", "kv_heads": "64", "ffn": "24576",
    "vocab": "51200", "seq": "2048", "gated_mlp": "0", "tied_embeddings": "1",
}  # fmt: skip


def only_run(tmp_path, **changes: str) -> MeasuredRun:
    (run,) = runs_of(tmp_path, changes)
    return run


def only_skipped(tmp_path, **changes: str) -> SkippedRun:
    runs, (skipped,) = read_runs(csv_of(tmp_path, changes))
    assert runs == []
    return skipped


def faults_of(path) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_runs(path)
    return [str(fault) for fault in caught.value.faults]


def test_a_row_becomes_a_run_in_our_words(tmp_path):
    run = only_run(tmp_path)

    assert run.layout == Layout(
        tp=2, pp=2, dp_replicate=1, dp_shard=4, zero_stage=1, sequence_parallel=True, micro_batch_size=1
    )
    assert (run.problem.model.name, run.problem.model.num_hidden_layers) == ("llama-3-8b", 32)
    assert (run.problem.cluster.nodes, run.problem.cluster.gpu.name) == (2, "h100")
    assert (run.problem.workload.global_batch_size, run.problem.workload.precision) == (128, "bf16")
    assert (run.engines, run.step_time_s, run.oom, run.suspect) == (("megatron-lm",), 10.0, False, False)


def test_whole_numbers_may_be_written_with_a_point(tmp_path):
    assert only_run(tmp_path, tp="2.0", gpus="16.0").layout.tp == 2


def test_without_sharding_data_parallel_ranks_hold_copies(tmp_path):
    layout = only_run(tmp_path, zero_stage="0", optimizer_sharding="0").layout

    assert (layout.dp_replicate, layout.dp_shard, layout.zero_stage) == (4, 1, 0)


def test_a_sharded_optimizer_alone_is_stage_1(tmp_path):
    layout = only_run(tmp_path, zero_stage="", optimizer_sharding="1").layout

    assert (layout.dp_shard, layout.zero_stage) == (4, 1)


def test_a_stage_without_ranks_to_shard_over_is_off(tmp_path):
    assert only_run(tmp_path, dp="1", gpus="4").layout.zero_stage == 0


def test_fsdp_still_shards_over_context_parallel_ranks_alone(tmp_path):
    layout = only_run(tmp_path, gpus="8", dp="1", cp="8", tp="1", pp="1", zero_stage="3", framework="torchtitan").layout

    assert (layout.dp_shard, layout.zero_stage) == (1, 3)


def test_hybrid_sharding_shards_inside_a_node(tmp_path):
    layout = only_run(
        tmp_path, tp="1", pp="1", dp="16", zero_stage="3", framework="PyTorch FSDP1", notes="sharding=HSDP (by node)"
    ).layout

    assert (layout.dp_replicate, layout.dp_shard) == (2, 8)


def test_a_missing_degree_of_data_parallelism_follows_from_the_gpus(tmp_path):
    assert only_run(tmp_path, dp="").layout.dp == 4  # 16 / (2 · 2)


def test_chunks_make_a_1f1b_run_an_interleaved_one(tmp_path):
    layout = only_run(tmp_path, vpp="4").layout

    assert (layout.schedule, layout.vpp) == ("interleaved", 4)


@pytest.mark.parametrize(
    ("printed", "ours", "vpp"), [("ZB-1p", "zb-h1", 1), ("ZB-2p", "zb-h2", 1), ("V-Half", "v-half", 2)]
)
def test_schedules_have_our_names_and_their_own_chunks(tmp_path, printed, ours, vpp):
    layout = only_run(tmp_path, pp_schedule=printed, vpp="").layout

    assert (layout.schedule, layout.vpp) == (ours, vpp)


def test_chunks_that_are_not_stated_are_found_where_only_one_number_is_possible(tmp_path):
    # 105 layers over 35 stages are 3 each: one chunk of 3 would be plain 1F1B, so it is 3 chunks of one.
    run = only_run(
        tmp_path, **GPT | {"layers": "105"}, pp="35", tp="1", dp="1", gpus="35", vpp="", pp_schedule="interleaved-1f1b"
    )

    assert run.layout.vpp == 3
    assert "the only way to interleave 105 layers over pp=35" in "; ".join(run.notes)


def test_an_interleaved_run_that_could_have_several_numbers_of_chunks_is_skipped(tmp_path):
    skipped = only_skipped(tmp_path, vpp="", pp_schedule="interleaved-1f1b")  # 16 layers a rank: 2, 4, 8 or 16

    assert skipped.reason == "vpp is not stated, and interleaved does not imply it"


def test_a_selective_run_says_what_is_computed_again(tmp_path):
    run = only_run(tmp_path, recompute="selective:layernorm+moe_act")

    assert run.layout.recompute == "selective"
    assert run.recomputed_modules == ("activation_function", "norms")


def test_a_selection_without_words_of_ours_is_the_engines_own_and_noted(tmp_path):
    run = only_run(tmp_path, recompute="selective:op")

    assert run.recomputed_modules is None
    assert "recompute 'selective:op' is taken as what the engine itself means by selective" in run.notes


def test_a_full_recomputation_with_a_method_is_full(tmp_path):
    assert only_run(tmp_path, recompute="full:uniform:1").layout.recompute == "full"


def test_a_model_that_was_cut_keeps_everything_but_its_layers(tmp_path):
    model = only_run(tmp_path, model="Llama-3-8B (cut to 4 layers)", layers="4").problem.model

    assert (model.num_hidden_layers, model.num_key_value_heads, model.vocab_size) == (4, 8, 128256)


def test_a_gpt_has_layer_norms_biases_and_learned_positions(tmp_path):
    model = only_run(tmp_path, **GPT).problem.model

    # 12·h² + 13·h a layer (Narayanan et al. 2021, equation 2), embedding, positions, final norm.
    layer = 12 * 6144**2 + 13 * 6144
    assert total_parameters(model) == 48 * layer + 51200 * 6144 + 2048 * 6144 + 2 * 6144


def test_an_mpt_has_the_parameters_that_its_source_counted():
    with (shipped_files()[0].parent / "mosaicml_llm_foundry.csv").open(newline="") as file:
        counted = {row["run_id"]: row["notes"].split("num_params=")[1].split(";")[0] for row in csv.DictReader(file)}

    runs, _ = read_runs(shipped_files()[0].parent / "mosaicml_llm_foundry.csv", shipped_assumptions())

    assert {run.run_id: total_parameters(run.problem.model) for run in runs} == {
        run_id: int(count) for run_id, count in counted.items()
    }


def test_a_mixture_of_experts_is_known_by_its_catalog_name(tmp_path):
    run = only_run(
        tmp_path, model="qwen3-30b-a3b (tokendrop)", hidden="2048", layers="48", heads="32", kv_heads="4", ffn="768",
        vocab="151936", moe_experts="128", moe_topk="8", tp="1", pp="1", dp="16", ep="8", seq_parallel="0",
        notes="head_dim=128;ffn=per-expert",
    )  # fmt: skip

    assert run.problem.model.head_dim == 128
    assert run.problem.model.moe is not None
    assert run.problem.model.moe.expert_intermediate_size == 768
    assert run.layout.ep == 8


def test_a_mixture_of_experts_of_its_own_sizes_has_experts_of_the_width_of_its_column(tmp_path):
    run = only_run(
        tmp_path, model="made-up", moe_experts="8", moe_topk="2", moe_ffn="1024", ep="2",
        notes="head_dim=64; 1 shared expert", framework="Megatron-Core",
    )  # fmt: skip

    assert run.problem.model.head_dim == 64
    assert run.problem.model.moe is not None
    assert run.problem.model.moe.expert_intermediate_size == 1024
    assert run.problem.model.moe.shared_intermediate_size == 1024
    assert run.layout.etp == 2  # Megatron-LM cuts experts by tp unless told otherwise


def test_the_tensor_degree_of_experts_is_read_from_the_notes(tmp_path):
    run = only_run(tmp_path, model="made-up", moe_experts="8", moe_topk="2", notes="method=MCore; expert_tp=1")

    assert run.layout.etp == 1


def test_links_have_the_nominal_rates_of_the_row(tmp_path):
    cluster = only_run(tmp_path, inter_gbps="100").problem.cluster

    assert cluster.intra_node.name == "nvlink4"  # 3600 Gbit/s are its 450 GB/s
    assert cluster.inter_node.bandwidth_bytes_per_s.value == 12.5e9
    assert cluster.inter_node.efficiency.value == 0.8


def test_blank_links_are_those_of_the_usual_node(tmp_path):
    cluster = only_run(tmp_path, intra_gbps="", inter_gbps="").problem.cluster

    assert (cluster.intra_node.name, cluster.inter_node.name) == ("nvlink4", "infiniband-ndr")


def test_an_nvlink_domain_spans_trays(tmp_path):
    cluster = only_run(
        tmp_path, gpu="GB200", gpus="16", gpus_per_node="4", intra_gbps="7200", notes="nvlink_domain=72; links=vendor"
    ).problem.cluster

    assert (cluster.nodes, cluster.gpus_per_node, cluster.nvlink_domain_gpus) == (4, 4, 16)


def test_fewer_gpus_than_a_node_has_are_a_smaller_node(tmp_path):
    cluster = only_run(tmp_path, gpus="4", dp="1").problem.cluster

    assert (cluster.nodes, cluster.gpus_per_node) == (1, 4)


@pytest.mark.parametrize(
    ("printed", "name", "memory_gib"),
    [
        ("A100-SXM4-40GB", "a100-40", 40),
        ("V100-SXM2-16GB", "v100-16", 16),
        ("NVIDIA H100 80GB HBM3", "h100", 80),
        ("H100-SXM-96GB-HBM2e-500W", "h100", 96),
    ],
)
def test_a_gpu_is_known_by_its_kind_and_its_memory(tmp_path, printed, name, memory_gib):
    gpu = only_run(tmp_path, gpu=printed, intra_gbps="", inter_gbps="").problem.cluster.gpu

    assert (gpu.name, gpu.memory_bytes.value) == (name, memory_gib * GIB)


@pytest.mark.parametrize("printed", ["TPUv4", "H100-PCIE-80GB", "GB200/B200 (unstated, ~184 GiB)"])
def test_a_gpu_that_the_catalog_lacks_is_a_reason(tmp_path, printed):
    assert only_skipped(tmp_path, gpu=printed).reason == f"the GPU '{printed}' is not in the catalog"


def test_a_global_batch_that_its_micro_batches_contradict_is_what_ran(tmp_path):
    run = only_run(tmp_path, global_batch="256", grad_accum="8")  # 8 · 1 sequence · dp 4

    assert run.problem.workload.global_batch_size == 32
    assert "the global batch is the 32 that ran, not the 256 of the label" in run.notes


def test_a_blank_step_time_follows_from_tokens_per_second(tmp_path):
    run = only_run(tmp_path, step_time_s="", tokens_per_s_per_gpu="4096")

    assert run.step_time_s == 128 * 8192 / (4096 * 16)


def test_a_run_without_any_speed_has_no_step_time(tmp_path):
    assert only_run(tmp_path, step_time_s="").step_time_s is None


@pytest.mark.parametrize(
    ("text", "kind", "rank"),
    [
        ("torch max allocated, last rank", MemoryKind.ALLOCATED, "last"),
        ("torch max reserved, GiB", MemoryKind.RESERVED, "fullest"),
        ("device (nvidia-smi)", MemoryKind.DEVICE, "fullest"),
        ("torch allocated or reserved, one rank (page does not say which)", MemoryKind.ALLOCATED, "one"),
        ("as printed, GB", MemoryKind.UNKNOWN, "fullest"),
    ],
)
def test_a_peak_knows_what_it_counts(tmp_path, text, kind, rank):
    run = only_run(tmp_path, peak_memory_gib="60", memory_kind=text)

    assert (run.peak_memory_bytes, run.memory_kind, run.memory_rank) == (60 * GIB, kind, rank)


def test_an_out_of_memory_label_is_yes_no_or_unknown(tmp_path):
    runs = runs_of(tmp_path, {"oom": "1"}, {"oom": "0"}, {"oom": ""})

    assert [run.oom for run in runs] == [True, False, None]


@pytest.mark.parametrize(
    "change", [{"suspect": "1"}, {"notes": "SUSPECT gas x mbs x dp != gbs"}, {"notes": "UNSTABLE cluster"}]
)
def test_a_warning_of_the_file_makes_a_run_suspect(tmp_path, change):
    assert only_run(tmp_path, **change).suspect


def test_memory_only_runs_have_a_time_that_does_not_count(tmp_path):
    assert not only_run(tmp_path, use="memory_only").time_counts


def test_runs_that_differ_in_layout_alone_share_a_sweep(tmp_path):
    one, other, longer = runs_of(tmp_path, {}, {"tp": "4", "dp": "2"}, {"seq": "4096"})

    assert one.sweep == other.sweep
    assert one.sweep != longer.sweep


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"micro_batch": ""}, "micro_batch is not stated"),
        ({"global_batch": ""}, "global_batch is not stated"),
        ({"recompute": ""}, "recompute is not stated"),
        ({"precision": "nvfp4"}, "the precision 'nvfp4' has no word of ours"),
        ({"pp_schedule": "pipedream"}, "the schedule 'pipedream' has no name of ours"),
        ({"pp_schedule": "1f1b+redis"}, "moves layers between stages"),
        ({"recompute": "selective:layer(every 2nd)"}, "recomputes every second layer"),
        ({"notes": "task=lora; links=vendor"}, "trains low-rank adapters only"),
        ({"dp": "3"}, "tp·pp·cp·dp = 2·2·1·3 = 12 is not the 16 GPUs"),
        ({"model": "made-up", "gated_mlp": ""}, "whether the MLP is gated is not stated"),
        ({"model": "made-up", "heads": ""}, "heads is not stated"),
        ({"zero_stage": "", "optimizer_sharding": ""}, "what is sharded over data parallel ranks is not stated"),
    ],
)
def test_a_row_that_says_too_little_is_listed_with_the_reason(tmp_path, change, reason):
    skipped = only_skipped(tmp_path, **change)

    assert (skipped.run_id, skipped.source) == ("run-0", "somebody")
    assert reason in skipped.reason


def test_a_row_counts_as_fully_described_by_its_own_cells_alone(tmp_path):
    assumed = {"somebody": {"recompute": Assumed(value="full", reason="the script says so")}}

    (with_it, without), _ = read_runs(csv_of(tmp_path, {}, {"recompute": ""}), assumed)

    assert (with_it.fully_described, without.fully_described) == (True, False)


def test_an_assumption_fills_a_blank_cell_and_never_a_stated_one(tmp_path):
    assumed = {"somebody": {"recompute": Assumed(value="full", reason="the script says so")}}

    (stated, blank), _ = read_runs(csv_of(tmp_path, {}, {"recompute": ""}), assumed)

    assert (stated.layout.recompute, stated.notes) == ("none", ())
    assert (blank.layout.recompute, blank.notes) == ("full", ("recompute is taken as full: the script says so",))


def test_a_printed_unit_can_be_corrected_by_an_assumption(tmp_path):
    assumed = {"somebody": {"memory_unit": Assumed(value="GB", reason="their code divides by 10^9")}}

    (run,), _ = read_runs(csv_of(tmp_path, {"peak_memory_gib": "30", "memory_kind": "allocated"}), assumed)

    assert run.peak_memory_bytes == 30 * GB


def test_an_unknown_framework_is_read_by_what_it_shards_and_noted(tmp_path):
    (sharding, plain) = runs_of(
        tmp_path, {"framework": "Own-1", "zero_stage": "3", "pp": "1", "dp": "8"}, {"framework": "Own-2"}
    )

    assert (sharding.engines, plain.engines) == (("torch",), ("megatron-lm",))
    assert "a framework that we do not know, which does not shard weights" in plain.notes[0]


def test_all_faults_of_a_file_are_reported_at_once(tmp_path):
    path = csv_of(
        tmp_path,
        {"tp": "two"},
        {"pp": "1.5"},
        {"oom": "2"},
        {"step_time_s": "-1"},
        {"run_id": "run-0"},
        {"gpus": "inf"},
    )

    faults = faults_of(path)

    assert [fault.split(": ", 2)[1] for fault in faults] == [
        "line 2, tp", "line 3, pp", "line 4, oom", "line 5, step_time_s", "line 6", "line 7, gpus"
    ]  # fmt: skip
    assert "'two' is not a number; give one, or leave the cell blank" in faults[0]


def test_a_missing_column_is_a_fault_with_the_nearest_name(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(csv_of(tmp_path, {}).read_text().replace("micro_batch", "microbatch"))

    assert faults_of(path) == [f"{path}: micro_batch: the column is missing (did you mean 'microbatch'?); add it"]


@pytest.mark.parametrize("row", ["a,b", ",".join(["x"] * (len(ROW) + 1))])
def test_a_line_with_too_few_or_too_many_cells_is_a_fault(tmp_path, row):
    path = csv_of(tmp_path)
    path.write_text(path.read_text() + row + "\n")

    assert any("cells than the header has columns" in fault for fault in faults_of(path))


def test_an_unclosed_quote_is_a_fault_and_no_crash(tmp_path):
    path = csv_of(tmp_path)
    path.write_text(path.read_text() + '"unclosed\n')

    assert any("is not CSV" in fault for fault in faults_of(path))


def test_a_missing_file_is_a_sentence(tmp_path):
    assert faults_of(tmp_path / "none.csv") == [f"{tmp_path / 'none.csv'}: does not exist; check the path"]


@pytest.mark.parametrize("path", shipped_files(), ids=lambda path: path.stem)
def test_every_row_that_ships_becomes_a_run_or_a_reason(path):
    with path.open(newline="", encoding="utf-8") as file:
        ids = [row["run_id"] for row in csv.DictReader(file)]

    runs, skipped = read_runs(path, shipped_assumptions())

    assert sorted([*(run.run_id for run in runs), *(run.run_id for run in skipped)]) == sorted(ids)
    assert all(run.reason for run in skipped)
