"""Idle time of each schedule against the formula that its authors, or a simulation of their rule, give.

p ranks, m micro-batches, v chunks; F, B, W of one rank. Unless it is said otherwise F = B = W = 1, so B + W = 2F.
"""

import pytest

from tests.cost.pipeline.sizes import idle_in_own_span_s, idle_s, replayed

EQUAL = {"f": 1, "b": 1, "w": 1}
UNEQUAL = {"f": 1, "b": 1.2, "w": 0.8}


@pytest.mark.parametrize(("pp", "m"), [(2, 2), (4, 4), (4, 12), (8, 8), (8, 32), (7, 5)])
@pytest.mark.parametrize("costs", [EQUAL, UNEQUAL])
@pytest.mark.parametrize("name", ["gpipe", "1f1b"])
def test_gpipe_and_1f1b_idle_p_minus_1_passes(name: str, costs: dict[str, float], pp: int, m: int) -> None:
    # (p - 1)(F + B + W), and as a share (p - 1)/(m + p - 1): Narayanan et al. 2021 (2104.04473), section 2.2
    timeline = replayed(name, pp=pp, m=m, **costs)

    assert idle_s(timeline) == pytest.approx((pp - 1) * 3)
    assert timeline.bubble_share == pytest.approx((pp - 1) / (m + pp - 1))


@pytest.mark.parametrize(("pp", "m", "vpp"), [(4, 8, 2), (4, 12, 3), (8, 32, 2), (8, 8, 4), (3, 9, 2)])
@pytest.mark.parametrize("name", ["interleaved", "breadth-first"])
def test_chunks_divide_the_bubble(name: str, pp: int, m: int, vpp: int) -> None:
    # (p - 1)(F + B + W)/v: Narayanan et al. 2021, section 2.2; Lamy-Poirier 2022 (2211.05953)
    assert idle_s(replayed(name, pp=pp, m=m, vpp=vpp)) == pytest.approx((pp - 1) * 3 / vpp)


@pytest.mark.parametrize(("pp", "m", "parts"), [(4, 8, 2), (8, 16, 4), (4, 4, 1)])
def test_slices_of_sequences_divide_the_bubble(pp: int, m: int, parts: int) -> None:
    # (p - 1)(F + B + W)/k: Sun et al. 2024 (2406.03488)
    timeline = replayed("seq1f1b", pp=pp, m=m, parts=parts)

    assert idle_s(timeline) == pytest.approx((pp - 1) * 3 / parts)
    assert timeline.bubble_share == pytest.approx((pp - 1) / (parts * m + pp - 1))


@pytest.mark.parametrize(("pp", "m"), [(4, 4), (4, 12), (8, 8), (8, 32)])
@pytest.mark.parametrize("costs", [EQUAL, UNEQUAL])
def test_zb_h1_fills_a_weight_gradient_per_hop(pp: int, m: int, costs: dict[str, float]) -> None:
    # (p - 1)(F + B - W): README of deepseek-ai/DualPipe, of Qi et al. 2023 (2401.10241)
    expected = (pp - 1) * (costs["f"] + costs["b"] - costs["w"])

    assert idle_s(replayed("zb-h1", pp=pp, m=m, **costs)) == pytest.approx(expected)


@pytest.mark.parametrize(("pp", "m", "vpp"), [(4, 8, 2), (8, 32, 2), (4, 12, 3)])
@pytest.mark.parametrize("costs", [EQUAL, UNEQUAL])
def test_interleaved_zero_bubble_has_zb_h1s_bubble_by_chunk(pp: int, m: int, vpp: int, costs: dict[str, float]) -> None:
    # (p - 1)(F + B - W)/v: ZB-H1's passes are v times shorter
    expected = (pp - 1) * (costs["f"] + costs["b"] - costs["w"]) / vpp

    assert idle_s(replayed("interleaved-zb", pp=pp, m=m, vpp=vpp, **costs)) == pytest.approx(expected)


@pytest.mark.parametrize(("pp", "m"), [(4, 8), (4, 12), (8, 16), (8, 32)])
@pytest.mark.parametrize("costs", [EQUAL, UNEQUAL])
def test_zb_h2_has_no_bubble_in_a_ranks_own_span_where_passes_are_equal(
    pp: int, m: int, costs: dict[str, float]
) -> None:
    # (p - 1)(F + B - 2W), for m of at least 2p - 1: Qi et al. 2023;
    # 0 for F = B = W: README of sail-sg/zero-bubble-pipeline-parallelism
    timeline = replayed("zb-h2", pp=pp, m=m, **costs)

    assert idle_in_own_span_s(timeline) == pytest.approx((pp - 1) * (costs["f"] + costs["b"] - 2 * costs["w"]))


@pytest.mark.parametrize("name", ["zb-h2", "zb-v"])
def test_a_barrier_between_steps_gives_zero_bubble_schedules_their_start_up_back(name: str) -> None:
    # the last of 4 ranks starts after 3 forwards, of a stage: F or F/2; nothing else is idle
    stages_before_the_last_rank = {"zb-h2": 3, "zb-v": 3 / 2}

    assert idle_s(replayed(name, pp=4, m=12)) == pytest.approx(stages_before_the_last_rank[name])


@pytest.mark.parametrize(("pp", "m"), [(4, 8), (4, 12), (8, 16), (8, 32), (5, 12)])
def test_zb_v_has_no_bubble_in_a_ranks_own_span_where_passes_are_equal(pp: int, m: int) -> None:
    # 0: Qi et al. 2023, section 6
    assert idle_in_own_span_s(replayed("zb-v", pp=pp, m=m)) == pytest.approx(0)


@pytest.mark.parametrize(("pp", "m"), [(4, 12), (8, 32)])
def test_zb_v_as_torch_runs_it_idles_where_passes_are_unequal_although_the_paper_says_none(pp: int, m: int) -> None:
    # published: none while W + 2B >= 2F and W + 2F >= 2B, for an order made for these times;
    # the fixed order idles (p - 1)(B - W) = 0.4(p - 1)
    assert idle_in_own_span_s(replayed("zb-v", pp=pp, m=m, **UNEQUAL)) == pytest.approx(0.4 * (pp - 1))


@pytest.mark.parametrize(("pp", "m"), [(4, 8), (4, 12), (6, 24), (8, 32), (16, 64)])
def test_v_half_has_half_the_bubble_of_1f1b(pp: int, m: int) -> None:
    # (p - 1)(F + B + W)/2: README of sail-sg/zero-bubble-pipeline-parallelism, of Qi et al. 2024 (2405.15362)
    assert idle_s(replayed("v-half", pp=pp, m=m)) == pytest.approx((pp - 1) * 3 / 2)


@pytest.mark.parametrize("pp", [3, 5, 7, 11])
def test_v_half_on_an_odd_number_of_ranks_idles_a_pass_less(pp: int) -> None:
    # published: (p - 1)·3/2; its turn does not have to wait there, which the replay finds to be worth one pass
    assert idle_s(replayed("v-half", pp=pp, m=4 * pp)) == pytest.approx((pp - 1) * 3 / 2 - 1)


@pytest.mark.parametrize(("pp", "m"), [(4, 8), (4, 12), (8, 32), (16, 64)])
def test_v_min_has_two_thirds_of_the_bubble_of_1f1b_and_half_a_pass_less(pp: int, m: int) -> None:
    # published: about 2/3 (p - 1)(F + B + W) = 2(p - 1): the same README; the replay is half a forward better
    assert idle_s(replayed("v-min", pp=pp, m=m)) == pytest.approx(2 * (pp - 1) - 0.5)


@pytest.mark.parametrize("pp", [3, 6, 9, 12])
def test_v_min_on_a_multiple_of_three_ranks_misses_two_thirds_by_half_a_pass(pp: int) -> None:
    # its turn waits two passes of half a rank there, so that passes do not collide
    assert idle_s(replayed("v-min", pp=pp, m=4 * pp)) == pytest.approx(2 * (pp - 1) + 0.5)


def test_v_min_idles_in_its_steady_state_where_passes_are_unequal() -> None:
    # published: "O(n) overhead"; with 8 more micro-batches of 3 passes each the bubble grows
    few, many = (replayed("v-min", pp=8, m=m, **UNEQUAL) for m in (24, 32))

    assert idle_s(many) > idle_s(few) + 1


@pytest.mark.parametrize(("pp", "m"), [(4, 8), (8, 16), (8, 20), (8, 32)])
def test_dualpipe_idles_as_its_authors_say(pp: int, m: int) -> None:
    # (p/2 - 1)(F&B + B - 3W), their B being B + W here, F&B = F + B + W: (p/2 - 1)(3 + 2 - 3); DualPipe's README
    assert idle_s(replayed("dualpipe", pp=pp, m=m)) == pytest.approx((pp / 2 - 1) * 2)


@pytest.mark.parametrize(("pp", "m"), [(2, 4), (4, 10), (8, 32), (5, 12)])
def test_dualpipev_has_dualpipes_bubble_on_half_of_the_ranks(pp: int, m: int) -> None:
    # the same with 2p stages of half a rank's layers: (2p/2 - 1)(3 + 2 - 3)/2
    assert idle_s(replayed("dualpipev", pp=pp, m=m)) == pytest.approx(pp - 1)


@pytest.mark.parametrize(("pp", "rounds"), [(4, 1), (4, 2), (4, 4), (8, 1), (8, 4), (16, 2)])
def test_chimera_idles_p_minus_2_backwards_where_they_are_as_long_as_forwards(pp: int, rounds: int) -> None:
    # (p - 2)(B + W), as a share (p - 2)/(2m + p - 2): Li and Hoefler 2021 (2107.06925)
    timeline = replayed("chimera", pp=pp, m=rounds * pp, f=1, b=0.5, w=0.5)

    assert idle_s(timeline) == pytest.approx(pp - 2)
    assert timeline.bubble_share == pytest.approx((pp - 2) / (2 * rounds * pp + pp - 2))


@pytest.mark.parametrize("pp", [2, 4, 8, 16])
def test_chimera_with_long_backwards_idles_p_minus_2_of_them_for_p_micro_batches(pp: int) -> None:
    # (p - 2)(B + W) = 2(p - 2), as a share (p - 2)/(1.5m + p - 2)
    timeline = replayed("chimera", pp=pp, m=pp)

    assert idle_s(timeline) == pytest.approx(2 * (pp - 2))
    assert timeline.bubble_share == pytest.approx((pp - 2) / (1.5 * pp + pp - 2))


@pytest.mark.parametrize(("pp", "rounds"), [(4, 2), (4, 4), (8, 2), (8, 4)])
def test_chimera_with_long_backwards_misses_the_published_share_beyond_p_micro_batches(pp: int, rounds: int) -> None:
    # published for any m: 2(p - 2); every further round of p micro-batches adds p - 2, less 1 in all, because a
    # backward is one forward longer than a forward. p = 4, m = 8: 5/29 = 17.2 % instead of 4/28 = 14.3 %
    timeline = replayed("chimera", pp=pp, m=rounds * pp)

    assert idle_s(timeline) == pytest.approx(2 * (pp - 2) + (rounds - 1) * (pp - 2) - 1)


@pytest.mark.parametrize(("pp", "waves"), [(4, 1), (8, 1), (16, 1), (4, 2), (8, 2), (16, 2), (8, 4)])
def test_hanayo_idles_a_wave_of_backwards_for_p_micro_batches(pp: int, waves: int) -> None:
    # (p - 1)(B + W)/waves, as a share (2p - 2)/(3p·waves + 2p - 2): Liu et al. 2023 (2308.15762) as simulated
    timeline = replayed("hanayo", pp=pp, m=pp, waves=waves)

    assert idle_s(timeline) == pytest.approx(2 * (pp - 1) / waves)
    assert timeline.bubble_share == pytest.approx((2 * pp - 2) / (3 * pp * waves + 2 * pp - 2))


@pytest.mark.parametrize(("pp", "rounds"), [(4, 2), (4, 4), (8, 2), (8, 4)])
def test_hanayo_with_long_backwards_idles_more_in_every_further_round(pp: int, rounds: int) -> None:
    # published for m = p only: 2(p - 1); a round of p micro-batches more adds p - 1, less half a pass in all
    assert idle_s(replayed("hanayo", pp=pp, m=rounds * pp)) == pytest.approx(
        2 * (pp - 1) + (rounds - 1) * (pp - 1) - 0.5
    )


@pytest.mark.parametrize(("pp", "rounds"), [(4, 1), (4, 4), (8, 1), (8, 4), (16, 2)])
def test_bitpipe_has_half_of_chimeras_bubble(pp: int, rounds: int) -> None:
    # (p - 2)(B + W)/2, with F = B + W a share of (p - 2)/(4m + p - 2): Wu et al. 2024 (2410.19367)
    timeline = replayed("bitpipe", pp=pp, m=rounds * pp, f=1, b=0.5, w=0.5)

    assert idle_s(timeline) == pytest.approx((pp - 2) / 2)
    assert timeline.bubble_share == pytest.approx((pp - 2) / (4 * rounds * pp + pp - 2))


@pytest.mark.parametrize("pp", [4, 8, 16])
def test_bitpipe_with_long_backwards_has_half_of_chimeras_bubble_for_p_micro_batches(pp: int) -> None:
    # (p - 2)(B + W)/2 = p - 2, as a share (p - 2)/(3m + p - 2)
    timeline = replayed("bitpipe", pp=pp, m=pp)

    assert idle_s(timeline) == pytest.approx(pp - 2)
    assert timeline.bubble_share == pytest.approx((pp - 2) / (3 * pp + pp - 2))


@pytest.mark.parametrize(("pp", "rounds"), [(4, 2), (4, 4), (8, 2), (8, 4)])
def test_bitpipe_with_long_backwards_misses_the_published_share_beyond_p_micro_batches(pp: int, rounds: int) -> None:
    # published: p - 2; half of what Chimera adds beyond p micro-batches comes on top
    expected = (pp - 2) + ((rounds - 1) * (pp - 2) - 1) / 2

    assert idle_s(replayed("bitpipe", pp=pp, m=rounds * pp)) == pytest.approx(expected)


@pytest.mark.parametrize(("pp", "m", "vpp"), [(4, 8, 2), (8, 32, 2), (4, 16, 3), (8, 32, 3), (4, 16, 4)])
def test_chronos_gives_the_gain_of_interleaving_back(pp: int, m: int, vpp: int) -> None:
    # p(F + B + W) for a block on its own; moved together, start-up and end overlap by one pass: (p - 1)(F + B + W)
    assert idle_s(replayed("chronos", pp=pp, m=m, vpp=vpp)) == pytest.approx((pp - 1) * 3)


@pytest.mark.parametrize(("pp", "most_periods"), [(4, 3.7), (8, 7.7), (16, 15.7)])
def test_chronos_with_a_recomputed_chunk_idles_less_than_p_of_its_longer_periods(pp: int, most_periods: float) -> None:
    # period: v(F + B + W) + F in passes of a chunk, 7/2 for v = 2; start-up and end take about p - 0.3 of them
    short, long = (replayed("chronos", pp=pp, m=m, recomputed_chunks=1) for m in (4 * pp, 6 * pp))

    assert idle_s(short) <= most_periods * 3.5
    assert idle_s(long) == pytest.approx(idle_s(short))  # nothing is lost between start-up and end


def test_chronos_with_one_of_four_chunks_recomputed_idles_a_little_in_every_period() -> None:
    # orders of four chunks are not searched; the regular pattern fits equal backwards only
    short, long = (replayed("chronos", pp=4, m=m, vpp=4, recomputed_chunks=1) for m in (16, 24))

    assert idle_s(short) < idle_s(long) < idle_s(short) + 8 * 13 / 4 / 4
