"""What each stage of a pipeline costs: seconds of its passes, bytes of what they keep."""

from dataclasses import dataclass

from autotune.cost.pipeline.operations import Kind


@dataclass(frozen=True, kw_only=True, slots=True)
class StageCosts:
    """Seconds and bytes of one micro-batch on each stage; every tuple has one entry a stage.

    forward_s, input_gradient_s, weight_gradient_s: the three passes; activation_bytes: kept from the forward on;
    freed_at_input_gradient: the share of them that the input gradient frees, the weight gradient frees the rest;
    boundary_bytes: what a recomputed stage keeps instead; transient_bytes: held only while a backward pass runs;
    resident_bytes: held all the time (weights, gradients, optimizer), once per replica; transfer_s: from one rank to
    another; hidden_in_pair_s: what a fused forward and backward save together. An empty tuple is nothing everywhere.
    """

    forward_s: tuple[float, ...]
    input_gradient_s: tuple[float, ...]
    weight_gradient_s: tuple[float, ...]
    activation_bytes: tuple[float, ...]
    freed_at_input_gradient: float = 0.0
    boundary_bytes: tuple[float, ...] = ()
    transient_bytes: tuple[float, ...] = ()
    resident_bytes: tuple[float, ...] = ()
    transfer_s: float = 0.0
    hidden_in_pair_s: float = 0.0

    @property
    def stages(self) -> int:
        """Stages that are described."""
        return len(self.forward_s)


def even_costs(
    stages: int,
    *,
    forward_s: float = 1.0,
    input_gradient_s: float = 1.0,
    weight_gradient_s: float = 1.0,
    activation_bytes: float = 1.0,
    transfer_s: float = 0.0,
) -> StageCosts:
    """Equal stages. Every number is of one stage, so of one chunk where a rank holds several."""
    return StageCosts(
        forward_s=(forward_s,) * stages,
        input_gradient_s=(input_gradient_s,) * stages,
        weight_gradient_s=(weight_gradient_s,) * stages,
        activation_bytes=(activation_bytes,) * stages,
        transfer_s=transfer_s,
    )


def seconds_by_kind(costs: StageCosts, *, parts: int, recomputed_stages: frozenset[int]) -> dict[Kind, list[float]]:
    """Seconds of one operation of each kind on each stage; a recomputed stage runs its forward in its backward too."""
    again = [f if stage in recomputed_stages else 0.0 for stage, f in enumerate(costs.forward_s)]
    input_gradient = [(b + r) / parts for b, r in zip(costs.input_gradient_s, again, strict=True)]
    weight_gradient = [w / parts for w in costs.weight_gradient_s]
    return {
        Kind.FORWARD: [f / parts for f in costs.forward_s],
        Kind.INPUT_GRADIENT: input_gradient,
        Kind.WEIGHT_GRADIENT: weight_gradient,
        Kind.BACKWARD: [b + w for b, w in zip(input_gradient, weight_gradient, strict=True)],
    }
