import time
from pathlib import Path

import numpy as np
import pytest

from autotune.errors import EnvironmentFaultError, InputError
from autotune.report.ranking import rank, ranking_seconds, rows_by_place
from autotune.report.table_file import read_table, write_table
from autotune.spec.axes import AXIS_NAMES
from autotune.spec.layout import LayoutTable, code_of
from autotune.trials.paths import is_temporary
from tests.examples import GIB
from tests.report.reports import KEYS, example_table, scored_table


def written(tmp_path: Path) -> Path:
    scored = example_table()
    path = tmp_path / "run" / "table.npz"
    write_table(path, scored, ranking_seconds(scored, {}, time_counts=True))
    return path


def rewritten(path: Path, **changes: object) -> Path:
    """The same file with arrays changed, or without those that are None."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | changes
    with path.open("wb") as target:
        np.savez(target, **{name: array for name, array in arrays.items() if array is not None})  # type: ignore[arg-type]
    return path


def told(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_table(path)
    return str(caught.value)


def test_a_table_survives_the_file(tmp_path: Path) -> None:
    scored = example_table()

    got = read_table(written(tmp_path))

    assert [got.table.layout(row).key for row in range(len(KEYS))] == list(KEYS)
    assert np.array_equal(got.step_time_s, scored.step_s)
    assert np.array_equal(got.peak_bytes, scored.peak_bytes)
    assert np.array_equal(got.upper_bytes, scored.upper_bytes)
    assert np.array_equal(got.verdicts, scored.verdicts)
    for name in AXIS_NAMES:
        assert getattr(got.table, name).dtype == getattr(scored.table, name).dtype, name


def test_places_can_be_taken_from_the_file(tmp_path: Path) -> None:
    got = read_table(written(tmp_path))

    rows = rows_by_place(got.ranking_s, got.peak_bytes, first=100)

    layouts = rank(example_table(), {}, top=100).layouts
    assert [got.table.layout(int(row)).key for row in rows] == [ranked.key for ranked in layouts]


def test_the_file_explains_its_codes_to_numpy_alone(tmp_path: Path) -> None:
    with np.load(written(tmp_path), allow_pickle=False) as file:
        names = file["schedule_choices"][file["schedule"]]
        verdicts = file["verdict_choices"][file["verdict"]]

    assert names.tolist() == ["1f1b", "interleaved", "1f1b", "1f1b", "1f1b"]
    assert verdicts.tolist() == ["fits", "borderline", "fits", "fits", "does-not-fit"]


def test_codes_of_another_order_are_read_by_name(tmp_path: Path) -> None:
    path = rewritten(
        written(tmp_path),
        recompute=np.array([0, 0, 1, 2, 2], dtype=np.uint8),
        recompute_choices=np.array(["full", "none", "selective"]),
    )

    got = read_table(path)

    expected = [code_of("recompute", name) for name in ("full", "full", "none", "selective", "selective")]
    assert got.table.recompute.tolist() == expected


def test_an_empty_table_can_be_written_and_read(tmp_path: Path) -> None:
    scored = scored_table([], [], [])
    write_table(tmp_path / "table.npz", scored, scored.step_s)

    assert len(read_table(tmp_path / "table.npz").table) == 0


def test_writing_again_replaces_the_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = written(tmp_path)
    written(tmp_path)

    assert list(path.parent.iterdir()) == [path]


def test_a_killed_writer_leaves_only_what_the_next_run_clears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[Path] = []

    def killed(file: object, **_: object) -> None:
        left.append(Path(file.name))  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", killed)
    with pytest.raises(KeyboardInterrupt):
        written(tmp_path)

    assert is_temporary(left[0])
    assert list((tmp_path / "run").iterdir()) == []


def test_a_path_that_cannot_be_written_is_a_fault_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file where the folder should be", encoding="utf-8")

    with pytest.raises(EnvironmentFaultError, match=r"table\.npz: the table cannot be written"):
        written(tmp_path)


@pytest.mark.parametrize("length", [0, 3, 1000, 5000])
def test_a_cut_off_file_is_an_input_error(tmp_path: Path, length: int) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:length])

    assert "is not a table of layouts" in told(path)


def test_a_flipped_bit_is_an_input_error(tmp_path: Path) -> None:
    path = written(tmp_path)
    data = bytearray(path.read_bytes())
    place = data.index(np.array([60.0 * GIB]).tobytes())
    data[place] ^= 1
    path.write_bytes(bytes(data))

    assert "is not a table of layouts" in told(path)


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    assert "does not exist" in told(tmp_path / "table.npz")


def test_a_single_array_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "table.npz"
    with path.open("wb") as file:
        np.save(file, np.zeros(3))

    assert "is a single array" in told(path)


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    path = rewritten(written(tmp_path), tp=np.array([{"any": "object"}] * 5, dtype=object))

    assert "is not a table of layouts" in told(path)


def test_another_schema_is_named(tmp_path: Path) -> None:
    assert "schema_version 2" in told(rewritten(written(tmp_path), schema_version=np.array(2)))
    assert "no schema_version" in told(rewritten(written(tmp_path), schema_version=None))


def test_all_faulty_columns_are_named(tmp_path: Path) -> None:
    path = rewritten(
        written(tmp_path),
        pp=None,
        tp=np.zeros((5, 2)),
        schedule=np.full(5, 99),
        verdict_choices=np.array(["fits", "maybe", "never"]),
    )

    sentences = told(path)

    for words in ("pp: is missing", "tp: is an array", "schedule: has codes from 99", "verdict: uses maybe, never"):
        assert words in sentences


def test_columns_of_different_lengths_are_a_fault(tmp_path: Path) -> None:
    assert "different lengths" in told(rewritten(written(tmp_path), cp=np.ones(4, dtype=np.uint8)))


def test_a_million_layouts_take_little_space_and_time(tmp_path: Path) -> None:
    """Processor seconds, and far above those of an idle core, so that only compression or a loop can fail it."""
    count = 1_000_000
    random = np.random.default_rng(0)
    degrees = ("tp", "pp", "dp_replicate", "dp_shard", "micro_batch_size")
    table = LayoutTable.from_columns({name: random.integers(1, 1025, count) for name in degrees})
    scored = scored_table(table, random.uniform(1, 9, count), random.uniform(10, 100, count) * GIB)
    ranking_s = ranking_seconds(scored, {}, time_counts=True)
    path = tmp_path / "table.npz"

    start = time.process_time()
    write_table(path, scored, ranking_s)
    elapsed_s = time.process_time() - start

    # Five axes of two bytes, eight of one, three totals and one time of eight, one verdict.
    assert path.stat().st_size == pytest.approx(count * (5 * 2 + 8 + 4 * 8 + 1), rel=1e-3)
    assert elapsed_s < 1.0
