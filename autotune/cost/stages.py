"""Which part of the model a pipeline rank holds: layers by kind, embedding, head."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from autotune.cost.parameters import LayerKind, layer_kinds, mixture_layers
from autotune.spec.layout import FloatColumn, IntColumn, LayoutTable
from autotune.spec.model import ModelSpec
from autotune.spec.schedules import SCHEDULES


class Place(IntEnum):
    """The ranks of a pipeline that can be the fullest; those between hold what the second does, or less."""

    FIRST = 0
    SECOND = 1
    LAST = 2


PLACES: Final = tuple(Place)

V_SHAPED: Final = np.array([facts.v_shaped for facts in SCHEDULES.values()])
SPLIT_BACKWARD: Final = np.array([facts.splits_backward for facts in SCHEDULES.values()])
WEIGHT_COPIES: Final = np.array([facts.weight_copies for facts in SCHEDULES.values()])


@dataclass(frozen=True, kw_only=True)
class Stages:
    """What the three ranks hold, one row a place (Place), one column a layout.

    rank: pipeline rank of the place; layers: by kind, in the order of `layer_kinds`, for one copy of the weights;
    embedding, head: how many of them (0 or 1); copies: of the layers' weights.
    """

    rank: IntColumn
    layers: tuple[FloatColumn, ...]
    embedding: FloatColumn
    head: FloatColumn
    copies: FloatColumn

    @property
    def all_layers(self) -> FloatColumn:
        """Layers of every kind."""
        return np.asarray(sum(self.layers))


def layers_of_places(table: LayoutTable, layers: int) -> FloatColumn:
    """Layers on the first, second and last pipeline rank.

    Where pp * vpp does not divide them, every chunk has ceil(layers / (pp * vpp)) and the missing ones are taken evenly
    from the ranks, from the last (which has the head) and then the first (the embedding) before the others: 126 layers
    over pp 8 x vpp 4 are 15, 16, …, 16, 15.
    """
    chunks = table.pp * table.vpp
    per_chunk = -(-layers // chunks)
    missing = chunks * per_chunk - layers
    fewer, extra = missing // table.pp, missing % table.pp
    most = per_chunk * table.vpp - fewer
    second = np.where(table.pp == 2, most - (extra >= 1), most)
    return np.stack([most - (extra >= 2), second, most - (extra >= 1)]).astype(np.float64)


def stages(table: LayoutTable, model: ModelSpec) -> Stages:
    """The three ranks of each layout. Reads pp, vpp and schedule."""
    total = layers_of_places(table, model.num_hidden_layers)
    single = table.pp == 1
    both_ends = V_SHAPED[table.schedule] | single
    twice = WEIGHT_COPIES[table.schedule] > 1
    yes, no = np.ones(len(table)), np.zeros(len(table))
    only_pair = table.pp == 2
    # A second copy of the weights runs the ranks backwards, so that both end ranks hold embedding and head.
    last_has_embedding = np.where(twice | single, 1.0, 0.0)
    last_has_head = np.where(twice | ~both_ends | single, 1.0, 0.0)
    first_has_head = np.where(both_ends | twice, 1.0, 0.0)
    embedding = np.stack([yes, np.where(only_pair, last_has_embedding, no), last_has_embedding])
    head = np.stack([first_has_head, np.where(only_pair, last_has_head, no), last_has_head])
    last = table.pp - 1
    return Stages(
        rank=np.stack([np.zeros_like(last), np.minimum(1, last), last]),
        layers=_by_kind(table, model, total, head),
        embedding=embedding,
        head=head,
        copies=WEIGHT_COPIES[table.schedule].astype(np.float64) + np.zeros_like(total),
    )


def _by_kind(table: LayoutTable, model: ModelSpec, total: FloatColumn, head: FloatColumn) -> tuple[FloatColumn, ...]:
    """Layers by kind. Multi-token prediction adds a layer of the last kind where the head is."""
    kinds = layer_kinds(model)
    extra = head * model.mtp_layers
    if len(kinds) == 1 or model.moe is None:
        return (total + extra,)
    # Leading dense layers stand in the first rank's first chunk; the others follow the model's mean mix.
    leading = np.zeros_like(total)
    leading[Place.FIRST] = np.minimum(model.moe.dense_layers, np.ceil(total[Place.FIRST] / table.vpp))
    leading[:, table.pp == 1] = model.moe.dense_layers
    share = mixture_layers(model) / (model.num_hidden_layers - model.moe.dense_layers)
    mixture = (total - leading) * share
    assert kinds == (LayerKind.DENSE, LayerKind.MIXTURE)
    return total - mixture, mixture + extra
