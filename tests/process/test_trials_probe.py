"""The probe's process: a sound answer, or a fault of the environment that says why; nothing is left running."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import pytest

from autotune.errors import EnvironmentFaultError
from autotune.trials.probe import probe_machine, require_torch, torch_available
from tests.process.remains import Remains, leaving_nothing

pytestmark = pytest.mark.process
PYTHON = Path(sys.executable)


@pytest.fixture
def remains() -> Iterator[Remains]:
    with leaving_nothing() as remains:
        yield remains


@pytest.fixture
def bare_python(tmp_path) -> Path:
    """An interpreter that sees no installed package."""
    script = tmp_path / "bare-python"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "$@"\n')
    script.chmod(0o755)
    return script


def probe(scenario, folder, remains, *, gpus=None, time_limit_s=30.0):
    environment = {**remains.environment, "SCENARIO": scenario}
    return probe_machine(
        PYTHON, gpus=gpus, folder=folder / "probe", time_limit_s=time_limit_s, environment=environment,
        module="fake_workers.probe",
    )  # fmt: skip


def test_torch_is_looked_up_without_loading_it(bare_python):
    assert torch_available(PYTHON) == version("torch")
    assert torch_available(bare_python) is None
    assert torch_available(Path("/nowhere/python")) is None


def test_without_torch_the_way_out_is_named(bare_python, tmp_path):
    with pytest.raises(EnvironmentFaultError, match=r"has no torch.*pip install 'autotune\[trials\]'") as caught:
        probe_machine(bare_python, gpus=None, folder=tmp_path / "probe")

    assert caught.value.exit_code == 3
    assert require_torch(PYTHON) == version("torch")


def test_the_answer_is_read_and_nothing_stays(tmp_path, remains):
    assert probe("good", tmp_path, remains).gpus == 1
    assert probe("good", tmp_path, remains, gpus=4).gpus == 4
    assert list((tmp_path / "probe").iterdir()) == []


def test_a_probe_that_dies_is_quoted_and_its_logs_stay(tmp_path, remains):
    with pytest.raises(
        EnvironmentFaultError, match=r"exit code 1 .*last words: RuntimeError: no CUDA driver"
    ) as caught:
        probe("crash", tmp_path, remains)

    (log,) = (tmp_path / "probe").glob("probe-*/stderr.log")
    assert str(log) in str(caught.value)


def test_two_probes_at_once_do_not_end_each_other(tmp_path, remains):
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(probe, "slow", tmp_path, remains)
        quick = pool.submit(probe, "good", tmp_path, remains)

        assert quick.result().gpus == 1
        assert slow.result().gpus == 1


def test_garbage_is_a_fault_of_the_environment(tmp_path, remains):
    with pytest.raises(EnvironmentFaultError, match=r"probe.json that cannot be read"):
        probe("garbage", tmp_path, remains)


def test_a_probe_that_hangs_is_ended_at_its_time_limit(tmp_path, remains):
    with pytest.raises(EnvironmentFaultError, match=r"did not end within 0\.5 s"):
        probe("hang", tmp_path, remains, time_limit_s=0.5)
