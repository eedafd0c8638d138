import pytest

from autotune.errors import InputError
from autotune.spec.axes import AXIS_NAMES
from autotune.spec.layout import Layout
from autotune.spec.layout_file import read_layout


def write(tmp_path, text):
    path = tmp_path / "layout.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_gives_only_the_axes_that_it_names(tmp_path):
    text = "tp: 8\nsequence_parallel: true\nschedule: zb-v\nrecompute: none\n"

    assert read_layout(write(tmp_path, text)) == {
        "tp": 8, "sequence_parallel": True, "schedule": "zb-v", "recompute": "none",
    }  # fmt: skip


def test_a_key_gives_every_axis_because_it_leaves_out_only_what_is_off():
    given = read_layout("tp8-pp2-shard32-z1-mbs1")

    assert set(given) == set(AXIS_NAMES)
    assert Layout(**given) == Layout(tp=8, pp=2, dp_shard=32, zero_stage=1)


def test_all_faults_of_a_layout_file_are_reported_at_once(tmp_path):
    text = "tp: 0\nmicro_batch: 4\npp: true\nrecompute: part\n"

    with pytest.raises(InputError) as error:
        read_layout(write(tmp_path, text))

    messages = {fault.key: fault.message for fault in error.value.faults}
    assert set(messages) == {"tp", "micro_batch", "pp", "recompute"}
    assert "did you mean 'micro_batch_size'" in messages["micro_batch"]


@pytest.mark.parametrize("text", ["tp8-xx2", "8", "", "tp0-mbs1"])
def test_a_key_that_is_none_is_refused(text):
    with pytest.raises(InputError):
        read_layout(text)


@pytest.mark.parametrize("text", ["", "[]\n", "8\n"])
def test_a_file_without_axes_is_refused(tmp_path, text):
    with pytest.raises(InputError):
        read_layout(write(tmp_path, text))


def test_a_missing_file_is_refused():
    with pytest.raises(InputError, match=r"none\.yaml: does not exist"):
        read_layout("none.yaml")
