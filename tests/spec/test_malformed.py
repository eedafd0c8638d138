"""Whatever stands in a file, it is either understood or an InputError; never another exception."""

import contextlib
import json

from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.spec.architectures import ARCHITECTURES
from autotune.spec.axes import AXIS_NAMES
from autotune.spec.catalog import MODELS
from autotune.spec.cluster_file import load_cluster
from autotune.spec.huggingface import load_model, model_names, read_config
from autotune.spec.layout import Layout
from autotune.spec.layout_file import read_layout
from autotune.spec.load import from_json, read_json, to_json
from autotune.spec.search_space import load_space

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**20) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
CONFIGS = {name: read_json(MODELS / f"{name}.json") for name in model_names()}
CLUSTER_KEYS = (
    "nodes",
    "gpus_per_node",
    "gpu",
    "intra_node",
    "inter_node",
    "nvlink_domain_gpus",
    "host_memory",
    "name",
)


@given(name=st.sampled_from(model_names()), data=st.data())
def test_a_config_with_any_value_in_any_key(name, data):
    config = dict(CONFIGS[name])
    key = data.draw(
        st.sampled_from([*config, "layer_types", "text_config", "model_type", "head_dim", "mlp_only_layers"])
    )
    config[key] = data.draw(ANYTHING | st.sampled_from(list(ARCHITECTURES)))

    with contextlib.suppress(InputError):
        assert read_config(config, where="config.json", name="mine").hidden_size >= 1


@given(key=st.sampled_from(CLUSTER_KEYS), value=ANYTHING)
def test_a_cluster_file_with_any_value_in_any_key(tmp_path_factory, key, value):
    data = {"nodes": 2, "gpus_per_node": 8, "gpu": "h100", key: value}
    path = tmp_path_factory.mktemp("any") / "cluster.json"
    path.write_text(json.dumps(data), encoding="utf-8")

    with contextlib.suppress(InputError):
        assert load_cluster(str(path)).gpus >= 1


@given(axes=st.dictionaries(st.sampled_from([*AXIS_NAMES, "tq"]), ANYTHING, max_size=3), data=ANYTHING)
def test_a_space_and_a_layout_file_with_anything_in_them(tmp_path_factory, axes, data):
    folder = tmp_path_factory.mktemp("any")
    (folder / "space.json").write_text(json.dumps({"intent": data, "axes": axes}), encoding="utf-8")
    (folder / "layout.json").write_text(json.dumps(axes), encoding="utf-8")

    with contextlib.suppress(InputError):
        assert set(load_space(str(folder / "space.json")).axes) <= set(AXIS_NAMES)
    with contextlib.suppress(InputError):
        assert isinstance(Layout(**read_layout(str(folder / "layout.json"))), Layout)


@given(field=st.sampled_from(sorted(to_json(load_model("demo")))), value=ANYTHING)
def test_json_data_with_any_value_in_any_field(field, value):
    data = {**to_json(load_model("demo")), field: value}

    with contextlib.suppress(InputError):
        assert from_json(type(load_model("demo")), data).name is not None


@given(text=st.text(max_size=12) | st.sampled_from([".", "..", "/", "x" * 5000, "a/" * 3000, "\0", "x.yaml\0"]))
def test_any_text_as_a_name(text):
    for load in (load_model, load_cluster, load_space, read_layout):
        with contextlib.suppress(InputError):
            load(text)
