"""The basis of a prediction: no better than the worst figure in it."""

from collections.abc import Iterator

from autotune.cost.profile import Factors
from autotune.spec.cluster import LinkSpec
from autotune.spec.figure import Basis, Figure
from autotune.spec.workload import Problem

_BEST_TO_WORST = tuple(Basis)


def prediction_basis(problem: Problem, factors: Factors) -> Basis:
    """Fitted where runs on this cluster scale the times, else the worst basis among the figures of the step time.

    A prediction is no measurement: of measured rates alone it is "interpolated" between them by the formulas.
    """
    if times_are_fitted(factors):
        return Basis.FITTED
    worst = max((figure.basis for figure in _figures(problem)), key=_BEST_TO_WORST.index)
    return max(worst, Basis.INTERPOLATED, key=_BEST_TO_WORST.index)


def times_are_fitted(factors: Factors) -> bool:
    """Whether runs moved the times; runs whose times do not count move the memory alone."""
    unmoved = (factors.compute_time, factors.communication_time, factors.overhead_s) == (1.0, 1.0, 0.0)
    return factors.fitted_to > 0 and not unmoved


def _figures(problem: Problem) -> Iterator[Figure]:
    cluster, gpu = problem.cluster, problem.cluster.gpu
    peak = gpu.peak_flops_per_s.get(problem.workload.precision)
    if peak is not None:
        yield peak
    yield from (gpu.gemm_efficiency, gpu.memory_bandwidth_bytes_per_s, gpu.memory_efficiency, gpu.kernel_launch_s)
    if cluster.gpus > 1:
        yield from _link_figures(cluster.intra_node)
    if cluster.gpus > cluster.nvlink_domain_gpus:
        yield from _link_figures(cluster.inter_node)


def _link_figures(link: LinkSpec) -> Iterator[Figure]:
    yield from (link.bandwidth_bytes_per_s, link.latency_s, link.efficiency)
