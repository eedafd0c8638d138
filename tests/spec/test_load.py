import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.spec.cluster import ClusterSpec
from autotune.spec.layout import Layout
from autotune.spec.load import from_json, read_file, read_json, read_yaml, to_json, trial_result_from_json
from autotune.spec.model import MlaSpec, ModelSpec
from autotune.spec.outcome import Failed, Measured, RankReport, Status, TrialSpec
from autotune.spec.probe import MachineProbe
from autotune.spec.workload import Problem, WorkloadSpec
from tests.examples import llama_3_8b, problem, qwen3_30b_a3b


def measured(**changes):
    values = {
        "warmup_step_times_s": (1.5, 1.25),
        "step_times_s": (1.0, 1.125),
        "losses": (7.5, 7.25, 7.0, 6.5),
        "gradient_norms": (1.0, 2.0, 3.0, 4.0),
        "ranks": (RankReport(rank=0, parameters=10, tensor_bytes=2**40), RankReport(rank=1, parameters=11)),
        "parameters": 21,
        "fingerprint": {"torch": "2.13.0", "host": "a"},
    }
    return Measured(**{**values, **changes})


def probe():
    return MachineProbe(
        device="cpu", name="a CPU", gpus=2, cores=2, memory_bytes=8, usable_memory_bytes=7, host_memory_bytes=16,
        gemm_flops_per_s={"fp32": 1e11, "bf16": 5e10}, memory_bandwidth_bytes_per_s=1e10,
        link_bandwidth_bytes_per_s=1e9, link_latency_s=1e-4, kernel_launch_s=1e-5, versions={"torch": "2.13.0"},
        date="2026-01-01",
    )  # fmt: skip


def trial():
    return TrialSpec(
        layout=Layout(tp=2, zero_stage=3, dp_shard=4, schedule="zb-v", sequence_parallel=True),
        model=qwen3_30b_a3b(),
        workload=WorkloadSpec(sequence_length=128, global_batch_size=16, precision="fp32"),
        device="cpu",
        processes_per_node=8,
        memory_limit_bytes=None,
    )


def latent():
    mla = MlaSpec(q_lora_rank=None, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128)
    return ModelSpec(**{**to_json(llama_3_8b()), "mla": mla})


def faults(error):
    return [str(fault) for fault in error.value.faults]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (TrialSpec, trial()),
        (Measured, measured()),
        (Failed, Failed(status=Status.OOM, evidence="rank-3: tried to allocate 2.0 GiB")),
        (ModelSpec, llama_3_8b()),
        (ModelSpec, latent()),
        (ClusterSpec, problem().cluster),
        (WorkloadSpec, problem().workload),
        (MachineProbe, probe()),
        (Layout, Layout(tp=8, recompute="full")),
        (Problem, problem(model=qwen3_30b_a3b(), nodes=3, gpus_per_node=4)),
    ],
)
def test_a_value_comes_back_from_json_as_it_was(kind, value):
    text = json.dumps(to_json(value))

    got = from_json(kind, json.loads(text))

    assert got == value
    assert type(got) is kind


def test_enums_travel_by_value_and_tuples_come_back_as_tuples():
    assert to_json(Failed(status=Status.OOM, evidence="e")) == {"status": "out-of-memory", "evidence": "e"}
    back = from_json(Measured, json.loads(json.dumps(to_json(measured()))))
    assert isinstance(back.step_times_s, tuple)
    assert isinstance(back.ranks[0], RankReport)


@given(losses=st.lists(st.floats(allow_nan=False), min_size=1, max_size=5), parameters=st.integers(1, 2**62))
def test_every_float_and_every_large_integer_survives(losses, parameters):
    value = measured(losses=tuple(losses), parameters=parameters)

    assert from_json(Measured, json.loads(json.dumps(to_json(value)))) == value


def test_a_diverged_loss_survives():
    back = from_json(Measured, json.loads(json.dumps(to_json(measured(losses=(math.nan, math.inf))))))

    assert math.isnan(back.losses[0])
    assert back.losses[1] == math.inf


def test_a_trial_result_is_failed_exactly_when_it_has_a_status():
    failed = Failed(status=Status.TIMEOUT, evidence="600 s")

    assert trial_result_from_json(to_json(failed)) == failed
    assert trial_result_from_json(to_json(measured())) == measured()


def test_all_faults_of_json_data_are_reported_at_once():
    data = to_json(trial())
    del data["device"]
    data["workload"]["sequence_length"] = True
    data["layout"]["tp"] = "8"
    data["model"]["num_hidden_layers"] = 2.0

    with pytest.raises(InputError) as error:
        from_json(TrialSpec, data, where="trial.json")

    assert {fault.key for fault in error.value.faults} == {
        "device", "workload.sequence_length", "layout.tp", "model.num_hidden_layers",
    }  # fmt: skip
    assert "trial.json: device: is missing; add it" in faults(error)


def test_an_unknown_key_deep_inside_is_refused_with_the_nearest_one():
    data = to_json(trial())
    data["workload"]["sequence_lenght"] = 1

    with pytest.raises(
        InputError, match=r"workload\.sequence_lenght: is not a known key \(did you mean 'sequence_length"
    ):
        from_json(TrialSpec, data)


@pytest.mark.parametrize("data", [None, 3, [], "text", {"status": "sunburn", "evidence": "e"}])
def test_data_of_the_wrong_shape_is_an_input_error(data):
    with pytest.raises(InputError):
        trial_result_from_json(data)


def test_a_missing_file_a_directory_and_binary_data_are_named(tmp_path):
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(InputError, match="does not exist; check the path"):
        read_yaml(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="is a directory; give a file in it"):
        read_json(tmp_path)
    with pytest.raises(InputError, match=r"is not UTF-8 text \(byte 0\)"):
        read_json(tmp_path / "binary.json")


def test_a_file_beyond_two_mebibytes_is_refused_unread(tmp_path):
    path = tmp_path / "large.json"
    path.write_text(" " * (2 * 2**20 + 1), encoding="utf-8")

    with pytest.raises(InputError, match=r"has 2\.0 MiB, the limit is 2\.0 MiB"):
        read_json(path)


def test_truncated_json_names_the_line_and_the_cut(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"hidden_size": 4096,\n "num_hidden_layers": 32,\n', encoding="utf-8")

    with pytest.raises(InputError, match=r"config\.json: is not JSON: .* in line 3, column 1; the file may be cut off"):
        read_json(path)


@given(cut=st.integers(0, 59))
def test_json_cut_anywhere_is_an_input_error(tmp_path_factory, cut):
    text = '{"hidden_size": 4096, "heads": [1, 2.5, "x"], "moe": null}  '.rstrip() + "  "
    path = tmp_path_factory.mktemp("cut") / "config.json"
    path.write_text(text[: min(cut, 57)], encoding="utf-8")

    with pytest.raises(InputError):
        read_json(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x [1]\nb: *x\n", r"anchors and aliases \(& and \*\) are not accepted in line 1"),
        ("a: 1\nb: 2\na: 3\n", "the key 'a' is given twice in line 3"),
        ("a: [1, 2\n", "is not usable YAML: .* in line 2"),
        ("a: !!python/object/apply:os.system [ls]\n", "could not determine a constructor"),
        ("[" * 60, "nested more than 50 levels deep in line 1"),
    ],
)
def test_yaml_that_could_surprise_is_refused(tmp_path, text, message):
    path = tmp_path / "file.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match=message):
        read_yaml(path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": 1, "a": 2}', "1" * 5000, ""])
def test_json_that_could_surprise_is_refused(tmp_path, text):
    path = tmp_path / "file.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(InputError):
        read_json(path)


def test_a_date_in_yaml_stays_text(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("date: 2024-12-31\n", encoding="utf-8")

    assert read_file(path) == {"date": "2024-12-31"}
