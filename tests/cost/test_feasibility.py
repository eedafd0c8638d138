from dataclasses import replace

import numpy as np
import pytest

from autotune.cost.estimates import Estimates
from autotune.cost.feasibility import VERDICTS, limit_bytes, upper_bytes, verdict_codes
from autotune.spec.layout import Layout
from autotune.spec.verdict import Verdict
from tests.cost.profiles import estimate_of, master_copy_profile
from tests.examples import GIB, h100_cluster, problem

LAYOUT = Layout(tp=8, sequence_parallel=True)


def _one() -> tuple[Estimates, float]:
    estimates = estimate_of([LAYOUT], problem())
    return estimates, float(estimates.memory.peak_bytes[0])


@pytest.mark.parametrize(
    ("share_of_the_peak", "expected"),
    # the upper bound is 1.08 times the point
    [(1.09, Verdict.FITS), (1.07, Verdict.BORDERLINE), (1.0, Verdict.BORDERLINE), (0.99, Verdict.DOES_NOT_FIT)],
)
def test_a_layout_fits_if_its_upper_bound_does_and_fails_if_its_point_does(
    share_of_the_peak: float, expected: Verdict
) -> None:
    estimates, peak_bytes = _one()

    codes = verdict_codes(estimates, master_copy_profile(), share_of_the_peak * peak_bytes, problem())

    assert VERDICTS[codes[0]] is expected


def test_the_upper_bound_is_the_point_times_the_profiles_factor() -> None:
    estimates, peak_bytes = _one()

    assert upper_bytes(estimates, master_copy_profile())[0] == pytest.approx(1.08 * peak_bytes)


def test_a_node_short_of_ram_fits_nothing() -> None:
    question = problem()
    poor = replace(question.cluster, host_memory_bytes=replace(question.cluster.host_memory_bytes, value=1e9))
    estimates, _ = _one()

    codes = verdict_codes(estimates, master_copy_profile(), np.inf, replace(question, cluster=poor))

    assert VERDICTS[codes[0]] is Verdict.DOES_NOT_FIT


def test_a_users_limit_lowers_the_usable_memory_and_never_raises_it() -> None:
    cluster = h100_cluster(1, 8)

    assert limit_bytes(cluster, None) == 79 * GIB
    assert limit_bytes(cluster, 40.0 * GIB) == 40 * GIB
    assert limit_bytes(cluster, 200.0 * GIB) == 79 * GIB
