"""Facts of each pipeline schedule, as data: what it needs of pp, vpp and the micro-batches, and what it holds.

p: pipeline ranks, m: micro-batches per step, v: model chunks per rank.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleFacts:
    """What must hold for a schedule, whoever runs it.

    fixed_vpp: the schedule implies this many chunks per rank, None if the user chooses; chunked: it needs v > 1;
    v_shaped: chunk 1 runs the ranks backwards, so the first and the last stage share a rank; weight_copies: copies of
    the weights each rank holds; splits_backward: input and weight gradients are separate operations; even_pp: p must
    be even; micro_batches_multiple_of_pp: m must be a multiple of p; min_micro_batches_per_stage: m is at least this
    times p; source: where this is written.
    """

    fixed_vpp: int | None = 1
    chunked: bool = False
    v_shaped: bool = False
    weight_copies: int = 1
    splits_backward: bool = False
    even_pp: bool = False
    micro_batches_multiple_of_pp: bool = False
    min_micro_batches_per_stage: int = 0
    source: str


SCHEDULES: dict[str, ScheduleFacts] = {
    "1f1b": ScheduleFacts(source="Narayanan et al. 2021 (2104.04473), section 2.2"),
    "gpipe": ScheduleFacts(source="Huang et al. 2018 (1811.06965)"),
    "interleaved": ScheduleFacts(
        fixed_vpp=None, chunked=True, micro_batches_multiple_of_pp=True,
        source="Narayanan et al. 2021 (2104.04473), section 2.2.2",
    ),
    "breadth-first": ScheduleFacts(fixed_vpp=None, chunked=True, source="Lamy-Poirier 2022 (2211.05953)"),
    "interleaved-zb": ScheduleFacts(
        fixed_vpp=None, chunked=True, splits_backward=True, micro_batches_multiple_of_pp=True,
        source="Qi et al. 2023 (2401.10241); torch.distributed.pipelining ScheduleInterleavedZeroBubble",
    ),
    "zb-h1": ScheduleFacts(splits_backward=True, source="Qi et al. 2023 (2401.10241)"),
    "zb-h2": ScheduleFacts(splits_backward=True, source="Qi et al. 2023 (2401.10241)"),
    "zb-v": ScheduleFacts(
        fixed_vpp=2, chunked=True, v_shaped=True, splits_backward=True, source="Qi et al. 2024 (2405.15362)"
    ),
    "v-half": ScheduleFacts(
        fixed_vpp=2, chunked=True, v_shaped=True, splits_backward=True, source="Qi et al. 2024 (2405.15362)"
    ),
    "v-min": ScheduleFacts(
        fixed_vpp=2, chunked=True, v_shaped=True, splits_backward=True, source="Qi et al. 2024 (2405.15362)"
    ),
    "dualpipe": ScheduleFacts(
        weight_copies=2, splits_backward=True, even_pp=True, min_micro_batches_per_stage=2,
        source="DeepSeek-V3 technical report (2412.19437), section 3.2.1",
    ),
    "dualpipev": ScheduleFacts(
        fixed_vpp=2, chunked=True, v_shaped=True, splits_backward=True, min_micro_batches_per_stage=2,
        source="deepseek-ai/DualPipe, dualpipev.py",
    ),
    "chimera": ScheduleFacts(weight_copies=2, even_pp=True, source="Li and Hoefler 2021 (2107.06925)"),
    "hanayo": ScheduleFacts(fixed_vpp=2, chunked=True, v_shaped=True, source="Liu et al. 2023 (2308.15762)"),
    "bitpipe": ScheduleFacts(
        fixed_vpp=2, chunked=True, v_shaped=True, weight_copies=2, even_pp=True, source="Wu et al. 2024 (2410.19367)"
    ),
    "seq1f1b": ScheduleFacts(source="Sun et al. 2024 (2406.03488)"),
    "chronos": ScheduleFacts(
        fixed_vpp=None, chunked=True, source="reconstructed from Lin et al. 2025 (2503.03182): Chronos-style"
    ),
}  # fmt: skip
