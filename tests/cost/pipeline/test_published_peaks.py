"""Activations that the ranks hold at most, in micro-batches' activations of a whole rank (1F1B: p)."""

import pytest

from tests.cost.pipeline.sizes import replayed


def test_gpipe_and_breadth_first_hold_every_micro_batch() -> None:
    assert replayed("gpipe", pp=4, m=9).peak_bytes == (9, 9, 9, 9)
    assert replayed("breadth-first", pp=4, m=8, vpp=2).peak_bytes == (8, 8, 8, 8)


@pytest.mark.parametrize(("pp", "m"), [(4, 12), (8, 32), (8, 5)])
def test_rank_i_of_1f1b_holds_p_minus_i(pp: int, m: int) -> None:
    # min(m, p - i): Narayanan et al. 2021 (2104.04473), section 2.2
    assert replayed("1f1b", pp=pp, m=m).peak_bytes == tuple(min(m, pp - rank) for rank in range(pp))


@pytest.mark.parametrize(("pp", "m", "vpp"), [(4, 8, 2), (8, 32, 2), (4, 12, 3), (8, 16, 4)])
def test_interleaving_holds_more_by_p_minus_1_chunks(pp: int, m: int, vpp: int) -> None:
    # p(1 + (p - 1)/(p·v)): Megatron-LM, theoretical_memory_usage.py
    assert max(replayed("interleaved", pp=pp, m=m, vpp=vpp).peak_bytes) == pytest.approx(
        pp * (1 + (pp - 1) / (pp * vpp))
    )


@pytest.mark.parametrize(("pp", "m", "parts"), [(4, 8, 2), (8, 16, 4), (4, 4, 8)])
def test_seq1f1b_holds_slices(pp: int, m: int, parts: int) -> None:
    # (p - 1 + k)/k: Sun et al. 2024 (2406.03488), a warm-up of p - 2 + k slices on rank 0 and one more
    assert max(replayed("seq1f1b", pp=pp, m=m, parts=parts).peak_bytes) == pytest.approx((pp - 1 + parts) / parts)


@pytest.mark.parametrize(("pp", "m"), [(4, 12), (8, 32)])
def test_every_rank_of_zb_h1_holds_p_and_of_zb_h2_2p_minus_1(pp: int, m: int) -> None:
    # 1x and 2x of 1F1B's p: README of sail-sg/zero-bubble-pipeline-parallelism;
    # 2p - 1 exactly: Qi et al. 2023 (2401.10241)
    assert replayed("zb-h1", pp=pp, m=m).peak_bytes == (pp,) * pp
    assert replayed("zb-h2", pp=pp, m=m).peak_bytes == (2 * pp - 1,) * pp


@pytest.mark.parametrize(("pp", "m", "vpp"), [(4, 8, 2), (8, 32, 2), (4, 12, 3)])
def test_interleaved_zero_bubble_holds_p_on_every_rank(pp: int, m: int, vpp: int) -> None:
    # rank i at its first W: the warm-up (v - 1)p + (p - 1 - i), one more F, and i chunks whose W is late: v·p chunks
    assert replayed("interleaved-zb", pp=pp, m=m, vpp=vpp).peak_bytes == pytest.approx((pp,) * pp)


@pytest.mark.parametrize(("pp", "m"), [(4, 12), (8, 32), (5, 12)])
def test_zb_v_holds_p_on_every_rank(pp: int, m: int) -> None:
    # Qi et al. 2023, section 6: the same as 1F1B, balanced
    assert replayed("zb-v", pp=pp, m=m).peak_bytes == pytest.approx((pp,) * pp)


@pytest.mark.parametrize(("pp", "m"), [(4, 12), (6, 24), (8, 32), (16, 64)])
def test_v_half_holds_half_of_p_and_one(pp: int, m: int) -> None:
    # (p + 2)/2: Qi et al. 2024 (2405.15362)
    assert max(replayed("v-half", pp=pp, m=m).peak_bytes) == pytest.approx((pp + 2) / 2)


@pytest.mark.parametrize(("pp", "m"), [(4, 12), (6, 24), (8, 32), (16, 64)])
def test_v_min_holds_at_most_a_third_of_p_and_a_little(pp: int, m: int) -> None:
    # (p + 4)/3, in whole chunks of half a unit: Qi et al. 2024
    assert (pp + 4) / 3 - 0.5 <= max(replayed("v-min", pp=pp, m=m).peak_bytes) <= (pp + 4) / 3


@pytest.mark.parametrize(("pp", "m"), [(4, 8), (8, 20), (8, 32)])
def test_dualpipe_holds_p_plus_1_on_every_rank(pp: int, m: int) -> None:
    # PP + 1: DualPipe's README
    assert replayed("dualpipe", pp=pp, m=m).peak_bytes == (pp + 1,) * pp


@pytest.mark.parametrize(("pp", "m"), [(4, 10), (8, 32)])
def test_dualpipev_holds_2p_plus_1_chunks_on_every_rank(pp: int, m: int) -> None:
    # PP + 1 with PP = 2p stages of half a rank each
    assert replayed("dualpipev", pp=pp, m=m).peak_bytes == ((2 * pp + 1) / 2,) * pp


@pytest.mark.parametrize("pp", [4, 8, 16])
def test_chimera_holds_between_half_of_p_and_p(pp: int) -> None:
    # D/2 + 1 at the ends to D in the middle for D micro-batches: Li and Hoefler 2021 (2107.06925)
    peaks = replayed("chimera", pp=pp, m=pp).peak_bytes

    assert peaks[0] == peaks[-1] == pp / 2 + 1
    assert max(peaks) == pp


@pytest.mark.parametrize("pp", [4, 8, 16])
def test_bitpipe_holds_between_p_plus_3_halves_and_p(pp: int) -> None:
    # published least (D + 3)/2; here the ends hold (3D + 2)/4 for D micro-batches, the middle D
    peaks = replayed("bitpipe", pp=pp, m=pp).peak_bytes

    assert peaks[0] == peaks[-1] == pytest.approx((3 * pp + 2) / 4)
    assert max(peaks) == pp


@pytest.mark.parametrize("name", ["chimera", "bitpipe", "hanayo"])
def test_list_scheduled_orders_never_hold_more_than_p(name: str) -> None:
    for pp in (2, 4, 8):
        for m in (pp, 2 * pp, 4 * pp):
            assert max(replayed(name, pp=pp, m=m).peak_bytes) <= pp


@pytest.mark.parametrize(
    ("pp", "vpp", "expected"), [(4, 2, 3.5), (8, 2, 6.5), (16, 2, 12.5), (4, 3, 10 / 3), (8, 3, 19 / 3)]
)
def test_chronos_holds_three_quarters_of_p_and_a_half(pp: int, vpp: int, expected: float) -> None:
    # v = 2: 3p/4 + 1/2; v = 3: 3.33 for p = 4, 6.33 for p = 8, the least without steady-state bubbles (exact search)
    assert max(replayed("chronos", pp=pp, m=4 * pp, vpp=vpp).peak_bytes) == pytest.approx(expected)


@pytest.mark.parametrize("pp", [4, 8, 16])
def test_chronos_with_a_recomputed_chunk_holds_a_quarter_of_p_and_a_half(pp: int) -> None:
    # p/4 kept by chunk 1, and 1/2 while chunk 0 is rebuilt
    assert max(replayed("chronos", pp=pp, m=4 * pp, recomputed_chunks=1).peak_bytes) == pytest.approx(pp / 4 + 0.5)
