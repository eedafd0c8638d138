from dataclasses import replace

import numpy as np
import pytest

from autotune.cost.collectives import Network, all_gather_s, all_reduce_s, all_to_all_s, group, network, send_s
from tests.examples import h100_cluster

NET = Network(
    domain_gpus=8, inner_bytes_per_s=100e9, inner_latency_s=1e-6, outer_bytes_per_s=10e9, outer_latency_s=5e-6
)
BYTES = np.array([8e9])


def test_a_ring_inside_a_domain_moves_all_but_its_own_part() -> None:
    # 3/4 * 8e9 / 100e9 + 3 hops of 1 us
    ranks = group(NET, np.array([4]), np.array([1]))

    assert all_gather_s(NET, ranks, BYTES)[0] == pytest.approx(0.06 + 3e-6)
    assert all_reduce_s(NET, ranks, BYTES)[0] == pytest.approx(2 * (0.06 + 3e-6))


def test_a_group_over_domains_uses_the_link_of_each_of_its_ranks() -> None:
    # 16 ranks in 2 domains of 8: 1/2 * 8e9 / (8 * 10e9) = 0.05 s outside, 15/16 * 8e9 / 100e9 = 0.075 s inside;
    # one hop of 5 us and 14 of 1 us
    ranks = group(NET, np.array([16]), np.array([1]))

    assert ranks.domains.tolist() == [2]
    assert all_gather_s(NET, ranks, BYTES)[0] == pytest.approx(0.075 + 19e-6)


def test_ranks_a_domain_apart_have_a_link_each() -> None:
    # stride 8: every rank in its own domain. 3/4 * 8e9 / 10e9 = 0.6 s and 3 hops of 5 us
    ranks = group(NET, np.array([4]), np.array([8]))

    assert ranks.inside.tolist() == [1]
    assert all_gather_s(NET, ranks, BYTES)[0] == pytest.approx(0.6 + 15e-6)


def test_latency_grows_with_the_group() -> None:
    small, large = (all_gather_s(NET, group(NET, np.array([n]), np.array([8])), np.array([0.0]))[0] for n in (8, 512))

    assert (small, large) == (pytest.approx(7 * 5e-6), pytest.approx(511 * 5e-6))


def test_a_group_of_one_costs_nothing() -> None:
    alone = group(NET, np.array([1]), np.array([8]))

    assert all_gather_s(NET, alone, BYTES)[0] == 0
    assert all_to_all_s(NET, alone, BYTES)[0] == 0
    assert send_s(NET, alone, BYTES)[0] == 0


def test_an_all_to_all_sends_most_of_it_out_of_the_domain() -> None:
    # 16 ranks, 8 inside: 8/16 of 8e9 bytes over 10e9 bytes/s = 0.4 s and 5 us
    assert all_to_all_s(NET, group(NET, np.array([16]), np.array([1])), BYTES)[0] == pytest.approx(0.4 + 5e-6)


def test_neighbours_in_two_domains_send_over_the_outer_link() -> None:
    near, far = (send_s(NET, group(NET, np.array([2]), np.array([stride])), BYTES)[0] for stride in (1, 8))

    assert near == pytest.approx(0.08 + 1e-6)
    assert far == pytest.approx(0.8 + 5e-6)


def test_an_nvlink_domain_may_span_many_nodes() -> None:
    # NVL72: 4 GPUs a node, 72 in a domain: a group of 16 stays inside
    rack = replace(h100_cluster(18, 4), nvlink_domain_gpus=72)

    assert group(network(rack), np.array([16]), np.array([1])).domains.tolist() == [1]
