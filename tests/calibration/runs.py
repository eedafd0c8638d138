"""Observations made by hand: a few parts, and what a run with known factors would show."""

from autotune.calibration.observation import Observation
from autotune.cost.profile import Factors

GIB = 2**30


def predicted(compute_s: float, communication_s: float, *, inside_bytes: float = 8.0 * GIB, **seen) -> Observation:
    """Compute as forward and backward, communication as tensor parallel; 2 GiB live outside."""
    return Observation(
        time_parts_s={
            "forward": compute_s / 3,
            "backward": compute_s * 2 / 3,
            "tensor_parallel": communication_s,
            "overhead": 0.0,
        },
        memory_parts_bytes={"weights": inside_bytes / 2, "activations": inside_bytes / 2, "outside": 2.0 * GIB},
        **seen,
    )


def run(compute_s: float, communication_s: float, truth: Factors, *, error: float = 0.0) -> Observation:
    """A measured run of a machine with these factors, off by a relative error."""
    step_s = truth.compute_time * compute_s + truth.communication_time * communication_s + truth.overhead_s
    return predicted(
        compute_s,
        communication_s,
        step_time_s=step_s * (1 + error),
        framework_bytes=8.0 * GIB * truth.memory * (1 + error),
    )
