"""Seconds of collectives, by the links that a group of ranks spans.

Ranks are numbered tensor first, then context, expert or data, pipeline last: Megatron-LM's order "tp-cp-ep-dp-pp"
(`megatron/core/parallel_state.py`), also torchtitan's mesh. A group is described by its size and its stride.
"""

from dataclasses import dataclass

import numpy as np

from autotune.spec.cluster import ClusterSpec, LinkSpec
from autotune.spec.layout import FloatColumn, IntColumn


@dataclass(frozen=True, kw_only=True, slots=True)
class Network:
    """The two tiers of links, as one GPU sees them, one direction, sustained.

    domain_gpus: GPUs that reach each other over the inner tier; a node and an NVLink domain are two things.
    """

    domain_gpus: int
    inner_bytes_per_s: float
    inner_latency_s: float
    outer_bytes_per_s: float
    outer_latency_s: float


@dataclass(frozen=True, kw_only=True)
class Group:
    """Ranks that communicate. size: how many; inside: how many of them share one NVLink domain."""

    size: FloatColumn
    inside: FloatColumn

    @property
    def domains(self) -> FloatColumn:
        """Domains that the group spans."""
        return np.ceil(self.size / self.inside)


def network(cluster: ClusterSpec) -> Network:
    """The cluster's links at their sustained rates."""
    return Network(
        domain_gpus=cluster.nvlink_domain_gpus,
        inner_bytes_per_s=_sustained(cluster.intra_node),
        inner_latency_s=cluster.intra_node.latency_s.value,
        outer_bytes_per_s=_sustained(cluster.inter_node),
        outer_latency_s=cluster.inter_node.latency_s.value,
    )


def group(net: Network, size: IntColumn | FloatColumn, stride: IntColumn | FloatColumn) -> Group:
    """A group of `size` ranks that are `stride` apart."""
    inside = np.maximum(net.domain_gpus // stride, 1)
    return Group(size=np.asarray(size, dtype=np.float64), inside=np.minimum(inside, size).astype(np.float64))


def all_gather_s(net: Network, ranks: Group, whole_bytes: FloatColumn) -> FloatColumn:
    """All-gather of `whole_bytes` in all (or reduce-scatter of as many), by rings.

        t = max((n-1)/n * S / B_inner if g > 1, (d-1)/d * S / (g * B_outer)) + latencies of the n-1 hops

    n: ranks over d domains, g in each; all g of a domain send to the next domain at once, each over its own link.
    Thakur et al. 2005 (doi 10.1177/1094342005051521) for the ring, NCCL's rings for the use of every link.
    """
    along = (ranks.size - 1) / ranks.size * whole_bytes / net.inner_bytes_per_s
    domains = ranks.domains
    across = (domains - 1) / domains * whole_bytes / (ranks.inside * net.outer_bytes_per_s)
    return np.maximum(np.where(ranks.inside > 1, along, 0.0), across) + ring_latency_s(net, ranks)


def all_reduce_s(net: Network, ranks: Group, whole_bytes: FloatColumn) -> FloatColumn:
    """All-reduce: a reduce-scatter and an all-gather."""
    return 2 * all_gather_s(net, ranks, whole_bytes)


def all_to_all_s(net: Network, ranks: Group, own_bytes: FloatColumn) -> FloatColumn:
    """Every rank sends 1/n of its `own_bytes` to each of the n ranks; inner and outer links work at the same time."""
    inner = (ranks.inside - 1) / ranks.size * own_bytes / net.inner_bytes_per_s
    outer = (ranks.size - ranks.inside) / ranks.size * own_bytes / net.outer_bytes_per_s
    latency = np.where(ranks.size > ranks.inside, net.outer_latency_s, net.inner_latency_s)
    return np.maximum(inner, outer) + np.where(ranks.size > 1, latency, 0.0)


def next_rank_link(net: Network, ranks: Group) -> tuple[FloatColumn, FloatColumn]:
    """Seconds per byte and latency to the next rank: of the outer link if any neighbours are in two domains."""
    outside = ranks.size > ranks.inside
    s_per_byte = 1 / np.where(outside, net.outer_bytes_per_s, net.inner_bytes_per_s)
    return s_per_byte, np.where(outside, net.outer_latency_s, net.inner_latency_s)


def send_s(net: Network, ranks: Group, sent_bytes: FloatColumn) -> FloatColumn:
    """One message to the next rank of the group."""
    s_per_byte, latency_s = next_rank_link(net, ranks)
    return np.where(ranks.size > 1, sent_bytes * s_per_byte + latency_s, 0.0)


def ring_latency_s(net: Network, ranks: Group) -> FloatColumn:
    """Latency of a ring: n-1 hops, of which one for each further domain leaves the domain."""
    outer_hops = ranks.domains - 1
    return outer_hops * net.outer_latency_s + (ranks.size - 1 - outer_hops) * net.inner_latency_s


def _sustained(link: LinkSpec) -> float:
    return link.bandwidth_bytes_per_s.value * link.efficiency.value
