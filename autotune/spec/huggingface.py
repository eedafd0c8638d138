"""ModelSpec from a Hugging Face config.json or a catalog name; `architectures` says what a config leaves out."""

from pathlib import Path
from typing import TypedDict

from autotune.errors import InputError
from autotune.spec.architectures import (
    ACTIVATIONS,
    ARCHITECTURES,
    FOREIGN_LAYERS,
    LAYER_TYPES,
    TEXT_PARTS,
    TEXT_TYPES,
    Architecture,
    Key,
    Mixture,
)
from autotune.spec.catalog import MODELS
from autotune.spec.load import is_there, names_a_file, read_json
from autotune.spec.model import MlaSpec, ModelSpec, MoeSpec
from autotune.spec.reader import Reader, shown, suggestion

SOURCE_KEY = "_source"
"""Key of the catalog's files that says where the numbers come from; a config.json of a model does not have it."""


class _Sizes(TypedDict):
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int


def load_model(name_or_path: str) -> ModelSpec:
    """The model of a catalog name, of a config.json, or of a folder that holds one. Raises InputError."""
    if name_or_path in model_names():
        ready = MODELS / f"{name_or_path}.json"
        return read_config(read_json(ready), where=ready.name, name=name_or_path)
    if not name_or_path or not names_a_file(name_or_path):
        message = f"'{name_or_path}' is not in the catalog{suggestion(name_or_path, model_names())}"
        ways_out = f"it has {', '.join(model_names())}; or give the path of a Hugging Face config.json"
        raise InputError.one(f"{message}; {ways_out}", where="--model")
    path = Path(name_or_path)
    if is_there(path) and path.is_dir():
        path = path / "config.json"
    name = path.resolve().parent.name if path.name == "config.json" else path.stem
    return read_config(read_json(path), where=str(path), name=name)


def model_names() -> tuple[str, ...]:
    """The models of the catalog."""
    return tuple(sorted(path.stem for path in MODELS.glob("*.json")))


def read_config(data: object, *, where: str, name: str) -> ModelSpec:
    """A ModelSpec from the data of a config.json. Raises InputError with all faults."""
    whole = Reader(data, where=where)
    whole.finish()
    reader = _text_part(whole)
    architecture = _architecture(reader, whole)
    _refuse_foreign_layers(reader)
    sizes = _sizes(reader, architecture)
    window = _sliding_window(reader, architecture)
    spec = ModelSpec(
        name=name,
        architecture=architecture.class_names[0],
        **sizes,
        tied_embeddings=_tied(reader, whole, architecture),
        gated_mlp=architecture.gated_mlp,
        activation=ACTIVATIONS.get(_word(reader, architecture.activation, tuple(ACTIVATIONS)), "silu"),
        norm=architecture.norm,
        norms_per_layer=architecture.norms_per_layer,
        qkv_bias=_flag(reader, architecture.qkv_bias),
        attention_output_bias=_flag(reader, architecture.attention_output_bias),
        mlp_bias=_flag(reader, architecture.mlp_bias),
        norm_bias=architecture.norm_bias,
        qk_norm=_flag(reader, architecture.qk_norm),
        qk_norm_over_heads=architecture.qk_norm_over_heads,
        attention_sinks=architecture.attention_sinks,
        learned_positions=reader.whole(architecture.learned_positions) if architecture.learned_positions else 0,
        sliding_window=window,
        sliding_window_layers=_sliding_layers(reader, architecture, sizes["num_hidden_layers"]) if window else 0,
        moe=_mixture(reader, architecture.mixture, sizes["num_hidden_layers"]) if architecture.mixture else None,
        mla=_latent_attention(reader) if architecture.latent_attention else None,
        mtp_layers=reader.whole(architecture.next_token_layers, 0, minimum=0) if architecture.next_token_layers else 0,
        source=_source(whole, reader, where),
    )
    reader.finish()
    return spec


def _text_part(whole: Reader) -> Reader:
    """The part that describes the language model: the whole, or what a multimodal config nests."""
    reader = whole
    for _ in range(2):
        nested = [key for key in TEXT_PARTS if isinstance(reader.data.get(key), dict)]
        if not nested:
            return reader
        reader = reader.part(nested[0])
    return reader


def _architecture(reader: Reader, whole: Reader) -> Architecture:
    """The record of the model_type, or of the class in `architectures` where there is none. Raises InputError."""
    outer = reader.data.get("model_type", whole.data.get("model_type"))
    kind = TEXT_TYPES.get(str(outer), str(outer)) if outer is not None else None
    if kind in ARCHITECTURES:
        return ARCHITECTURES[str(kind)]
    named = whole.data.get("architectures")
    classes = [str(item) for item in named] if isinstance(named, list) else []
    for record in ARCHITECTURES.values():
        if kind is None and any(item in record.class_names for item in classes):
            return record
    for key, meaning in FOREIGN_LAYERS.items():
        if key in reader.data:
            raise InputError.one(_foreign(key, meaning), where=reader.where, key=key)
    if kind is None and not classes:
        message = f"is missing; add it, one of {', '.join(ARCHITECTURES)}"
    else:
        wrong = kind or classes[0]
        near = suggestion(wrong, ARCHITECTURES)
        message = f"the architecture '{wrong}' is not known{near}; known: {', '.join(ARCHITECTURES)}"
    raise InputError.one(message, where=reader.where, key="model_type")


def _refuse_foreign_layers(reader: Reader) -> None:
    for key, meaning in FOREIGN_LAYERS.items():
        if reader.data.get(key):
            reader.fault(key, _foreign(key, meaning))
    kinds = reader.data.get("layer_types")
    if isinstance(kinds, list):
        for kind in sorted({str(kind) for kind in kinds} - set(LAYER_TYPES)):
            reader.fault(
                "layer_types", f"'{kind}' is a kind of layer that is not known; known: {', '.join(LAYER_TYPES)}"
            )
    if reader.data.get("is_encoder_decoder"):
        reader.fault("is_encoder_decoder", "true; encoder-decoder models cannot be planned, give a decoder-only model")


def _foreign(key: str, meaning: str) -> str:
    return f"'{key}' tells of {meaning}, which cannot be counted here; give a model of transformer layers alone"


def _sizes(reader: Reader, architecture: Architecture) -> _Sizes:
    """The sizes that every model has, with what transformers assumes of those that are missing."""

    def size(field: str, default: int | None = None) -> int:
        return reader.whole(architecture.keys.get(field, field), architecture.sizes.get(field, default))

    hidden_size = size("hidden_size")
    heads = size("num_attention_heads")
    intermediate = architecture.keys.get("intermediate_size", "intermediate_size")
    sizes: _Sizes = {
        "hidden_size": hidden_size,
        "num_hidden_layers": size("num_hidden_layers"),
        "num_attention_heads": heads,
        "num_key_value_heads": size("num_key_value_heads", heads),
        "head_dim": size("head_dim", max(1, hidden_size // heads)),
        "intermediate_size": reader.whole(intermediate, 4 * hidden_size if architecture.four_times_hidden else None),
        "vocab_size": size("vocab_size"),
        "max_position_embeddings": reader.whole(
            architecture.keys.get("max_position_embeddings", "max_position_embeddings"), 0, minimum=0
        ),
    }
    if reader.faults:
        return sizes
    if "head_dim" not in reader and "head_dim" not in architecture.sizes and hidden_size % heads:
        reader.fault("head_dim", f"is missing and {heads} heads do not divide the hidden size {hidden_size}; add it")
    key_value_heads = sizes["num_key_value_heads"]
    if heads % key_value_heads:
        message = f"{key_value_heads} does not divide the {heads} attention heads; give a divisor of {heads}"
        reader.fault("num_key_value_heads", message)
    return sizes


def _tied(reader: Reader, whole: Reader, architecture: Architecture) -> bool:
    """A multimodal config sometimes says on its top level alone that the head is tied."""
    tied = architecture.tied_embeddings
    if isinstance(tied, Key) and tied.name not in reader and tied.name in whole:
        return whole.flag(tied.name)
    return _flag(reader, tied)


def _flag(reader: Reader, value: bool | Key) -> bool:
    return reader.flag(value.name, bool(value.default)) if isinstance(value, Key) else value


def _word(reader: Reader, key: Key, allowed: tuple[str, ...]) -> str:
    return reader.choice(key.name, allowed, str(key.default))


def _sliding_window(reader: Reader, architecture: Architecture) -> int:
    """Tokens that a windowed layer sees; 0 where there is no window, also where the config says null."""
    if architecture.sliding == "none" or reader.data.get("use_sliding_window") is False:
        return 0
    if architecture.sliding == "from max_window_layers on" and "use_sliding_window" not in reader:
        return 0
    key = architecture.sliding_window
    if key.name in reader.data and reader.data[key.name] is None:
        return 0
    return reader.whole(key.name, int(key.default or 0), minimum=0)


def _sliding_layers(reader: Reader, architecture: Architecture, layers: int) -> int:
    """How many layers have the window, of a model that has one."""
    kinds = reader.data.get("layer_types")
    if isinstance(kinds, list):
        if len(kinds) != layers:
            reader.fault("layer_types", f"lists {len(kinds)} layers, num_hidden_layers is {layers}; make them agree")
        return sum(kind == "sliding_attention" for kind in kinds)
    match architecture.sliding:
        case "none":
            return 0
        case "every layer":
            return layers
        case "every other layer":
            return (layers + 1) // 2
        case "all but every n-th layer":
            return layers - layers // reader.whole("sliding_window_pattern", 6)
        case "from max_window_layers on":
            return max(0, layers - reader.whole("max_window_layers", layers, minimum=0))


def _mixture(reader: Reader, keys: Mixture, layers: int) -> MoeSpec:
    experts = reader.whole(keys.num_experts)
    per_token = reader.whole(keys.experts_per_token)
    width = reader.whole(keys.width)
    if per_token > experts:
        reader.fault(keys.experts_per_token, f"{per_token} is more than the {experts} experts; give at most {experts}")
    shared = reader.whole(keys.shared_width, 0, minimum=0) if keys.shared_width else 0
    if keys.shared_count:
        shared = width * reader.whole(keys.shared_count, 0, minimum=0)
    dense = reader.whole(keys.dense_layers, 0, minimum=0) if keys.dense_layers else 0
    if keys.dense_list:
        dense = max(dense, _leading_layers(reader, keys.dense_list))
    frequency = reader.whole(keys.frequency, 1) if keys.frequency else 1
    if dense >= layers:
        reader.fault(keys.dense_layers or str(keys.dense_list), f"{dense} leaves no mixture in {layers} layers")
    return MoeSpec(
        num_experts=experts,
        experts_per_token=per_token,
        expert_intermediate_size=width,
        shared_intermediate_size=shared,
        shared_expert_gate=keys.shared_gate and shared > 0,
        router_bias=keys.router_bias,
        dense_layers=dense,
        moe_layer_frequency=frequency,
    )


def _leading_layers(reader: Reader, key: str) -> int:
    """How many layers a list of dense layers names; they must be the leading ones."""
    listed = reader.data.get(key) or []
    if not isinstance(listed, list) or sorted(map(str, listed)) != sorted(str(index) for index in range(len(listed))):
        reader.fault(key, f"{shown(listed)} is not a list of leading layers; only [0, 1, ...] can be planned")
        return 0
    return len(listed)


def _latent_attention(reader: Reader) -> MlaSpec:
    return MlaSpec(
        q_lora_rank=reader.whole("q_lora_rank") if "q_lora_rank" in reader else None,
        kv_lora_rank=reader.whole("kv_lora_rank"),
        qk_nope_head_dim=reader.whole("qk_nope_head_dim"),
        qk_rope_head_dim=reader.whole("qk_rope_head_dim"),
        v_head_dim=reader.whole("v_head_dim"),
    )


def _source(whole: Reader, reader: Reader, where: str) -> str:
    source = whole.text(SOURCE_KEY, where)
    return source if reader is whole else f"{source}, {reader.key} alone (nothing but the language model is counted)"
