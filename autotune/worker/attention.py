"""Attention with grouped queries, rotary positions and a sequence that context parallelism cuts.

Rank r of cp holds pieces r and 2·cp-1-r of 2·cp equal pieces, so that all ranks have the same share of the causal
triangle. Keys and values are gathered, and each piece attends to what stands before it (Llama 3, 2407.21783, section
3.3.2): a rectangle whose causal diagonal ends in the lower right corner, which the fused kernels know.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.utils.checkpoint import checkpoint

from autotune.spec.model import ModelSpec
from autotune.worker.norms import norm_over

ROTARY_BASE = 10_000.0
"""Su et al. 2021 (2104.09864), section 3.2.2. It changes no shape and no time."""

_SEQUENCE_DIM = 2
"""Of queries, keys and values: [batch, heads, sequence, head_dim]."""


@dataclass(frozen=True, kw_only=True)
class SequenceShards:
    """Which tokens of a sequence this rank has. mesh: the cp ranks, None without context parallelism.

    positions: of the rank's tokens; cosine, sine: rotary tables of those positions [tokens, head_dim], empty for a
    model with learned positions.
    """

    mesh: DeviceMesh | None
    length: int
    positions: Tensor
    cosine: Tensor
    sine: Tensor

    @property
    def degree(self) -> int:
        """Ranks that share a sequence."""
        return 1 if self.mesh is None else self.mesh.size()


def local_positions(length: int, *, degree: int, rank: int) -> Tensor:
    """Positions of the tokens that one cp rank has: pieces r and 2·cp-1-r; all of them without context parallelism."""
    if degree == 1:
        return torch.arange(length)
    pieces = torch.arange(length).chunk(2 * degree)
    return torch.cat([pieces[rank], pieces[2 * degree - 1 - rank]])


def sequence_shards(
    model: ModelSpec, length: int, mesh: DeviceMesh | None, *, device: torch.device, dtype: torch.dtype
) -> SequenceShards:
    """The tokens of this rank, with the rotary tables of their positions."""
    degree, rank = (1, 0) if mesh is None else (mesh.size(), mesh.get_local_rank())
    positions = local_positions(length, degree=degree, rank=rank)
    frequencies = ROTARY_BASE ** (-torch.arange(0, model.head_dim, 2, dtype=torch.float64) / model.head_dim)
    angles = torch.outer(positions.double(), frequencies).repeat(1, 2)
    if model.learned_positions:
        angles = angles[:0]
    return SequenceShards(
        mesh=mesh,
        length=length,
        positions=positions.to(device),
        cosine=angles.cos().to(device=device, dtype=dtype),
        sine=angles.sin().to(device=device, dtype=dtype),
    )


class Attention(nn.Module):
    """Causal self-attention. recompute_core: softmax(QK)V is computed again in the backward pass, not kept."""

    def __init__(self, model: ModelSpec, shards: SequenceShards, *, recompute_core: bool, unfused: bool) -> None:
        super().__init__()
        self.head_dim = model.head_dim
        hidden, heads, kv_heads = model.hidden_size, model.num_attention_heads, model.num_key_value_heads
        self.query = nn.Linear(hidden, heads * model.head_dim, bias=model.qkv_bias)
        self.key = nn.Linear(hidden, kv_heads * model.head_dim, bias=model.qkv_bias)
        self.value = nn.Linear(hidden, kv_heads * model.head_dim, bias=model.qkv_bias)
        self.output = nn.Linear(heads * model.head_dim, hidden, bias=model.attention_output_bias)
        self.query_norm = norm_over(model, model.head_dim) if model.qk_norm else None
        self.key_norm = norm_over(model, model.head_dim) if model.qk_norm else None
        self.shards = shards
        self.recompute_core = recompute_core
        self.unfused = unfused

    def forward(self, x: Tensor) -> Tensor:
        """[batch, sequence, hidden] to the same. Under tensor parallelism this rank has its share of the heads."""
        query = self._heads(self.query(x), self.query_norm, rotate=True)
        key = self._heads(self.key(x), self.key_norm, rotate=True)
        value = self._heads(self.value(x), None, rotate=False)
        if self.shards.mesh is not None:
            key, value = (gather_sequence(tensor, self.shards.mesh) for tensor in (key, value))
        if self.recompute_core:
            mixed = checkpoint(self._core, query, key, value, use_reentrant=False, preserve_rng_state=False)
        else:
            mixed = self._core(query, key, value)
        return self.output(mixed.transpose(1, 2).flatten(2))

    def _heads(self, projected: Tensor, norm: nn.Module | None, *, rotate: bool) -> Tensor:
        heads = projected.unflatten(-1, (-1, self.head_dim))
        if norm is not None:
            heads = norm(heads)
        heads = heads.transpose(1, 2)
        return self._rotate(heads) if rotate and self.shards.cosine.numel() else heads

    def _rotate(self, heads: Tensor) -> Tensor:
        first, second = heads.chunk(2, dim=-1)
        return heads * self.shards.cosine + torch.cat([-second, first], dim=-1) * self.shards.sine

    def _core(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        degree = self.shards.degree
        if degree == 1:
            return causal_attention(query, key, value, unfused=self.unfused)
        assert self.shards.mesh is not None
        piece, rank = self.shards.length // (2 * degree), self.shards.mesh.get_local_rank()
        mixed = []
        for part, index in zip(query.chunk(2, dim=_SEQUENCE_DIM), (rank, 2 * degree - 1 - rank), strict=True):
            end = (index + 1) * piece
            before = (tensor.narrow(_SEQUENCE_DIM, 0, end) for tensor in (key, value))
            mixed.append(causal_attention(part, *before, unfused=self.unfused))
        return torch.cat(mixed, dim=_SEQUENCE_DIM)


def causal_attention(query: Tensor, key: Tensor, value: Tensor, *, unfused: bool) -> Tensor:
    """softmax(QK^T / sqrt(d))V, where the queries are the last tokens of the keys."""
    length, keys = query.shape[_SEQUENCE_DIM], key.shape[_SEQUENCE_DIM]
    grouped = query.shape[1] != key.shape[1]
    if unfused:
        return _unfused(query, key, value)
    attend = nn.functional.scaled_dot_product_attention
    if length == keys:
        return attend(query, key, value, is_causal=True, enable_gqa=grouped)
    if query.device.type == "cpu":  # a lower-right bias is understood by the CUDA kernels alone
        return attend(query, key, value, attn_mask=_visible(query, key), enable_gqa=grouped)
    # It loads torch's compiler, which takes a second.
    from torch.nn.attention.bias import causal_lower_right

    return attend(query, key, value, attn_mask=causal_lower_right(length, keys), enable_gqa=grouped)


def _visible(query: Tensor, key: Tensor) -> Tensor:
    length, keys = query.shape[_SEQUENCE_DIM], key.shape[_SEQUENCE_DIM]
    return torch.ones(length, keys, dtype=torch.bool, device=query.device).tril(keys - length)


def _unfused(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The scores and their softmax as tensors, as attention without a fused kernel holds them."""
    groups = query.shape[1] // key.shape[1]
    key, value = (tensor.repeat_interleave(groups, dim=1) if groups > 1 else tensor for tensor in (key, value))
    scores = query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5
    scores = scores.masked_fill(~_visible(query, key), float("-inf"))
    return torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype) @ value


def gather_sequence(tensor: Tensor, mesh: DeviceMesh) -> Tensor:
    """Keys or values of the whole sequence in its order, from the two pieces that each cp rank has.

    In the backward pass each rank gets the sum of all ranks' gradients of its own pieces.
    """
    sharded = DTensor.from_local(tensor, mesh, [Shard(_SEQUENCE_DIM)], run_check=False)
    gathered = sharded.redistribute(placements=[Replicate()]).to_local(grad_placements=[Partial()])
    pieces = gathered.chunk(2 * mesh.size(), dim=_SEQUENCE_DIM)
    return torch.cat([*pieces[0::2], *reversed(pieces[1::2])], dim=_SEQUENCE_DIM)
