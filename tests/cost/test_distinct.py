import numpy as np

from autotune.cost.distinct import LARGEST_CODE, Combinations, combinations, numbered, spread
from autotune.cost.tensors import Tokens
from autotune.spec.layout import LayoutTable


def _table(**columns: list[int]) -> LayoutTable:
    return LayoutTable.from_columns(columns)


def _combinations(table: LayoutTable, *axes: str) -> Combinations:
    return combinations(table, numbered(table, axes), axes)


def test_each_combination_of_the_named_axes_occurs_once() -> None:
    table = _table(tp=[1, 2, 1, 2, 1], pp=[4, 4, 8, 4, 4], cp=[1, 2, 3, 4, 5])

    found = _combinations(table, "tp", "pp")

    assert sorted(zip(found.table.tp.tolist(), found.table.pp.tolist(), strict=True)) == [(1, 4), (1, 8), (2, 4)]


def test_spreading_the_combinations_gives_back_the_columns() -> None:
    generator = np.random.default_rng(0)
    table = _table(**{axis: generator.integers(1, 50, 5000).tolist() for axis in ("tp", "pp", "cp", "dp_shard")})

    found = _combinations(table, "tp", "pp", "cp", "dp_shard")

    for axis in ("tp", "pp", "cp", "dp_shard"):
        assert np.array_equal(getattr(found.table, axis)[found.inverse], getattr(table, axis))


def test_values_too_large_for_a_flag_each_are_told_apart_too() -> None:
    table = _table(micro_batch_size=[LARGEST_CODE * 3, 1, LARGEST_CODE * 3, LARGEST_CODE])

    found = _combinations(table, "micro_batch_size")

    assert found.table.micro_batch_size[found.inverse].tolist() == table.micro_batch_size.tolist()
    assert len(found.table) == 3


def test_columns_of_several_rows_are_spread_along_the_last() -> None:
    columns = Tokens(all=np.array([1.0, 2.0]), stored=np.array([[1.0, 2.0], [3.0, 4.0]]), routed=np.array([5.0, 6.0]))

    wide = spread(columns, np.array([1, 0, 1]))

    assert wide.all.tolist() == [2.0, 1.0, 2.0]
    assert wide.stored.tolist() == [[2.0, 1.0, 2.0], [4.0, 3.0, 4.0]]
