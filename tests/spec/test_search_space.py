import pytest

from autotune.errors import InputError
from autotune.spec.axes import AXIS_NAMES
from autotune.spec.search_space import AxisChoice, SearchSpace, load_space, parse_axis_values, space_names


def write(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_four_ready_spaces_are_there_each_with_its_intent():
    assert space_names() == ("demo", "dense", "long_context", "moe")
    for name in space_names():
        space = load_space(name)
        assert space.name == name
        assert space.intent
        assert set(space.axes) <= set(AXIS_NAMES)


def test_dense_leaves_out_experts_and_moe_has_them():
    assert {"ep", "etp"}.isdisjoint(load_space("dense").axes)
    assert {"ep", "etp"} <= set(load_space("moe").axes)


def test_every_form_of_a_choice_is_read(tmp_path):
    text = (
        "intent: a test\naxes:\n  tp: any\n  pp: {max: 64}\n  vpp: [1, 2, 2, 4]\n  zero_stage: 1\n"
        "  recompute: [none, full]\n  sequence_parallel: true\n"
    )

    space = load_space(write(tmp_path, text))

    assert space == SearchSpace(
        name="mine",
        intent="a test",
        axes={
            "tp": AxisChoice(),
            "pp": AxisChoice(maximum=64),
            "vpp": AxisChoice(values=(1, 2, 4)),
            "zero_stage": AxisChoice(values=(1,)),
            "recompute": AxisChoice(values=("none", "full")),
            "sequence_parallel": AxisChoice(values=(True,)),
        },
    )


def test_all_faults_of_a_space_are_reported_at_once(tmp_path):
    text = (
        "intnet: x\naxes:\n  dp_shards: any\n  pp: {maximum: 4}\n  vpp: [true, 0]\n  zero_stage: 4\n  cp: []\n"
        "  recompute: {max: 2}\n  schedule: zbv\n  tp: {max: 0}\n"
    )

    with pytest.raises(InputError) as error:
        load_space(write(tmp_path, text))

    messages = {fault.key: fault.message for fault in error.value.faults}
    assert set(messages) == {
        "intnet", "axes.dp_shards", "axes.pp.maximum", "axes.pp.max", "axes.vpp", "axes.zero_stage", "axes.cp",
        "axes.recompute", "axes.schedule", "axes.tp.max",
    }  # fmt: skip
    assert "did you mean 'intent'" in messages["intnet"]
    assert "did you mean 'dp_shard'" in messages["axes.dp_shards"]
    assert "did you mean 'zb-v'" in messages["axes.schedule"]
    assert [f.message for f in error.value.faults if f.key == "axes.vpp"] == [
        "is true or false, True; it must be a whole number",
        "0 is not positive; give a whole number of at least 1",
    ]


def test_an_unknown_space_is_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"--space: 'dens' is not a ready space \(did you mean 'dense'\?\)"):
        load_space("dens")


def test_a_pinned_axis_replaces_the_choice_of_the_space():
    space = load_space("dense").with_axis("tp", (4, 8)).with_axis("ep", [2])

    assert space.axes["tp"] == AxisChoice(values=(4, 8))
    assert space.axes["ep"] == AxisChoice(values=(2,))
    assert space.axes["pp"] == load_space("dense").axes["pp"]


@pytest.mark.parametrize(
    ("axis", "text", "values"),
    [
        ("tp", "4,8", (4, 8)),
        ("tp", " 8 , 8,4", (8, 4)),
        ("zero_stage", "0,3", (0, 3)),
        ("sequence_parallel", "true,false", (True, False)),
        ("schedule", "1f1b,zb-v", ("1f1b", "zb-v")),
        ("recompute", "full", ("full",)),
    ],
)
def test_a_list_on_the_command_line_is_read(axis, text, values):
    assert parse_axis_values(axis, text) == values


@pytest.mark.parametrize(
    ("axis", "text", "message"),
    [
        ("tp", "4,x", "--tp: is text, 'x'; it must be a whole number"),
        ("tp", "0", "--tp: 0 is not positive; give a whole number of at least 1"),
        ("tp", "-2", "--tp: -2 is not positive"),
        ("tp", "9999999999", "9999999999 is beyond 2147483647"),
        ("tp", "", "--tp: is text, ''; it must be a whole number"),
        ("tp", "9" * 30, "it must be a whole number"),
        ("tp", "²", "it must be a whole number"),
        ("zero_stage", "4", "--zero-stage: 4 is not known; known: 0, 1, 2, 3"),
        ("sequence_parallel", "1", "--sequence-parallel: is text, '1'; it must be true or false"),
        ("schedule", "1f1", r"--schedule: '1f1' is not known \(did you mean '1f1b'\?\)"),
    ],
)
def test_a_wrong_value_on_the_command_line_is_refused(axis, text, message):
    with pytest.raises(InputError, match=message):
        parse_axis_values(axis, text)


def test_every_wrong_value_of_a_list_is_reported():
    with pytest.raises(InputError) as error:
        parse_axis_values("tp", "0,x,4")

    assert len(error.value.faults) == 2
