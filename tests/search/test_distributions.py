import pytest
from optuna.distributions import CategoricalDistribution

from autotune.search.distributions import distributions_of, fingerprint, layout_of, params_of
from autotune.spec.axes import AXES, AXIS_NAMES
from autotune.spec.layout import Layout, LayoutTable
from tests.search.toy import layouts


def test_every_axis_has_one_distribution():
    assert tuple(distributions_of(LayoutTable.of(layouts()))) == AXIS_NAMES


def test_an_axis_offers_the_values_of_the_table_in_order():
    table = LayoutTable.of(
        [Layout(tp=8, schedule="zb-v", pp=2, vpp=2, sequence_parallel=True), Layout(tp=2, micro_batch_size=3)]
    )

    got = distributions_of(table)

    assert got["tp"] == CategoricalDistribution([2, 8])
    assert got["schedule"] == CategoricalDistribution(["1f1b", "zb-v"])
    assert got["sequence_parallel"] == CategoricalDistribution([False, True])
    assert got["zero_stage"] == CategoricalDistribution([0])


@pytest.mark.parametrize("layout", layouts()[::5])
def test_a_layout_survives_the_way_through_parameters(layout):
    assert layout_of(params_of(layout)) == layout


def test_a_trial_that_was_killed_while_it_was_asked_names_no_layout():
    params = params_of(Layout(tp=2))
    del params[AXES[-1].name]

    assert layout_of(params) is None


def test_another_table_has_another_fingerprint_only_if_an_axis_offers_other_values():
    one = distributions_of(LayoutTable.of([Layout(tp=1), Layout(tp=2)]))
    turned = distributions_of(LayoutTable.of([Layout(tp=2), Layout(tp=1)]))
    more = distributions_of(LayoutTable.of([Layout(tp=1), Layout(tp=2), Layout(tp=4)]))

    assert fingerprint(one) == fingerprint(turned)
    assert fingerprint(one) != fingerprint(more)
