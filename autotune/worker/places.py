"""Where a rank stands in a layout: the device meshes, and what the rank is responsible for."""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from autotune.spec.layout import Layout
from autotune.spec.workload import WorkloadSpec


@dataclass(frozen=True, kw_only=True)
class Place:
    """One rank's place. Ranks are numbered pp outermost, then dp_replicate, dp_shard, cp, and tp innermost.

    mesh: dims (pp, replicate, shard, tp). replicate: ranks that hold copies of the states; shard: ranks that share them
    out, which are those of dp_shard and cp; zero_stage 0 has the cp ranks among the copies.
    context: the cp ranks, None without context parallelism; dp_rank: which part of the batch the rank has.
    """

    layout: Layout
    device: torch.device
    mesh: DeviceMesh
    context: DeviceMesh | None
    dp_rank: int

    @property
    def tensor(self) -> DeviceMesh:
        """The tp ranks."""
        return self.mesh["tp"]

    @property
    def pipeline(self) -> dist.ProcessGroup:
        """The ranks of the pipeline."""
        return self.mesh["pp"].get_group()

    @property
    def pipeline_rank(self) -> int:
        """Position in the pipeline."""
        return self.mesh["pp"].get_local_rank()

    @property
    def stage_ranks(self) -> int:
        """Ranks that have the same pipeline position: tp * cp * dp."""
        return self.layout.tp * self.layout.cp * self.layout.dp

    @property
    def sharding(self) -> DeviceMesh:
        """What FSDP2 shards over; two-dimensional (copies, shards) where there are copies."""
        copies = self.mesh["replicate"].size() > 1
        return self.mesh["replicate", "shard"] if copies else self.mesh["shard"]


def place_of(layout: Layout, device: torch.device) -> Place:
    """This rank's place. Every rank of the process group calls it at the same time."""
    replicate, shard = layout.dp_replicate, layout.dp_shard * layout.cp
    if layout.zero_stage == 0:
        replicate, shard = layout.dp * layout.cp, 1
    mesh = init_device_mesh(
        device.type, (layout.pp, replicate, shard, layout.tp), mesh_dim_names=("pp", "replicate", "shard", "tp")
    )
    context = None
    if layout.cp > 1:
        whole = init_device_mesh(
            device.type, (layout.pp, layout.dp, layout.cp, layout.tp), mesh_dim_names=("pp", "dp", "cp", "tp")
        )
        context = whole["cp"]
    dp_rank = dist.get_rank() // (layout.cp * layout.tp) % layout.dp
    return Place(layout=layout, device=device, mesh=mesh, context=context, dp_rank=dp_rank)


def uses_fsdp(layout: Layout, workload: WorkloadSpec) -> bool:
    """Whether FSDP2 holds the parameters; else they are plain copies whose gradients are summed once a step.

    FSDP2 is also what keeps fp32 weights and casts a layer's weights for the time it computes: mixed precision without
    sharding is FSDP2 with shards of one rank.
    """
    return layout.zero_stage > 0 or workload.precision != "fp32" or workload.gradient_dtype != "fp32"
