"""A small decoder-only transformer of a ModelSpec's shape, cut into pipeline stages. Its parameters start on "meta"."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from autotune.spec.model import Activation, ModelSpec
from autotune.worker.attention import Attention, SequenceShards
from autotune.worker.norms import norm_over

Recompute = Literal["none", "selective", "full"]

_ACTIVATIONS = {"silu": nn.functional.silu, "gelu": nn.functional.gelu, "relu": nn.functional.relu}


@dataclass(frozen=True, kw_only=True, slots=True)
class StagePlan:
    """What one pipeline stage holds. layers: global indices."""

    index: int
    count: int
    layers: range

    @property
    def has_embedding(self) -> bool:
        """It is the first."""
        return self.index == 0

    @property
    def has_head(self) -> bool:
        """It is the last."""
        return self.index == self.count - 1


class Mlp(nn.Module):
    """A plain or gated MLP: down(act(up(x))) or down(act(gate(x)) * up(x))."""

    def __init__(self, model: ModelSpec) -> None:
        super().__init__()
        width, hidden, bias = model.intermediate_size, model.hidden_size, model.mlp_bias
        self.gate = nn.Linear(hidden, width, bias=bias) if model.gated_mlp else None
        self.up = nn.Linear(hidden, width, bias=bias)
        self.down = nn.Linear(width, hidden, bias=bias)
        self.activation: Activation = model.activation

    def forward(self, x: Tensor) -> Tensor:
        """[batch, sequence, hidden] to the same."""
        activate = _ACTIVATIONS[self.activation]
        inner = activate(self.up(x)) if self.gate is None else activate(self.gate(x)) * self.up(x)
        return self.down(inner)


class Block(nn.Module):
    """One layer. Two norms: before attention and MLP; four: behind them too; one: attention and MLP side by side."""

    def __init__(self, model: ModelSpec, shards: SequenceShards, *, recompute: Recompute, unfused: bool) -> None:
        super().__init__()
        self.attention = Attention(model, shards, recompute_core=recompute == "selective", unfused=unfused)
        self.mlp = Mlp(model)
        self.attention_norm = norm_over(model, model.hidden_size)
        self.mlp_norm = norm_over(model, model.hidden_size) if model.norms_per_layer > 1 else None
        after = model.norms_per_layer > 2
        self.after_attention_norm = norm_over(model, model.hidden_size) if after else None
        self.after_mlp_norm = norm_over(model, model.hidden_size) if after else None
        self.recompute_all = recompute == "full"

    def forward(self, x: Tensor) -> Tensor:
        """[batch, sequence, hidden] to the same."""
        if self.recompute_all:
            return checkpoint(self._layer, x, use_reentrant=False, preserve_rng_state=False)
        return self._layer(x)

    def _layer(self, x: Tensor) -> Tensor:
        normed = self.attention_norm(x)
        if self.mlp_norm is None:
            return x + self.attention(normed) + self.mlp(normed)
        x = x + _maybe(self.after_attention_norm, self.attention(normed))
        return x + _maybe(self.after_mlp_norm, self.mlp(self.mlp_norm(x)))


class Stage(nn.Module):
    """The layers of one pipeline stage, with the embedding before the first and norm and head behind the last.

    Parameters carry the names they have in the whole model ("layers.3.mlp.up.weight") whatever the layout. On a stage
    with both ends a tied head is the embedding's parameter; on a stage with the head alone it is a copy.
    """

    def __init__(
        self, model: ModelSpec, plan: StagePlan, shards: SequenceShards, *, recompute: Recompute, unfused: bool
    ) -> None:
        super().__init__()
        self.plan = plan
        self.tied = model.tied_embeddings
        self.shards = shards
        hidden = model.hidden_size
        self.embedding = nn.Embedding(model.vocab_size, hidden) if plan.has_embedding else None
        learned = plan.has_embedding and model.learned_positions > 0
        self.positions = nn.Embedding(model.learned_positions, hidden) if learned else None
        self.embedding_norm = norm_over(model, hidden) if plan.has_embedding and model.embedding_norm else None
        self.layers = nn.ModuleDict(
            {str(index): Block(model, shards, recompute=recompute, unfused=unfused) for index in plan.layers}
        )
        self.final_norm = norm_over(model, hidden) if plan.has_head and model.final_norm else None
        self.head = nn.Linear(hidden, model.vocab_size, bias=model.head_bias) if plan.has_head else None

    def forward(self, x: Tensor) -> Tensor:
        """Token ids [batch, sequence] or hidden states [batch, sequence, hidden] to hidden states or logits."""
        if self.embedding is not None:
            x = self.embedding(x)
            if self.positions is not None:
                x = x + self.positions(self.shards.positions)
            x = _maybe(self.embedding_norm, x)
        for layer in self.layers.values():
            x = layer(x)
        return _maybe(self.head, _maybe(self.final_norm, x))


def _maybe(module: nn.Module | None, x: Tensor) -> Tensor:
    return x if module is None else module(x)


def build_stage(
    model: ModelSpec, plan: StagePlan, shards: SequenceShards, *, recompute: Recompute, unfused: bool
) -> Stage:
    """A stage without memory for its parameters."""
    with torch.device("meta"):
        return Stage(model, plan, shards, recompute=recompute, unfused=unfused)


def tie(stage: Stage) -> None:
    """Make the head's weight the embedding's, where the stage has both."""
    if stage.embedding is not None and stage.head is not None:
        stage.head.weight = stage.embedding.weight
