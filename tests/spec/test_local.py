from dataclasses import replace

import pytest

from autotune.errors import InputError
from autotune.spec.cluster_file import local_cluster
from autotune.spec.figure import Basis
from autotune.spec.probe import MachineProbe

CPU = MachineProbe(
    device="cpu", name="a CPU", gpus=2, cores=2, memory_bytes=12_000, usable_memory_bytes=10_000,
    host_memory_bytes=24_000, gemm_flops_per_s={"fp32": 1e11, "bf16": 4e10}, memory_bandwidth_bytes_per_s=1e10,
    link_bandwidth_bytes_per_s=2e9, link_latency_s=1e-4, kernel_launch_s=1e-5, versions={}, date="2026-01-01",
)  # fmt: skip
H100 = replace(
    CPU, device="cuda", name="NVIDIA H100 80GB HBM3", gpus=8, usable_memory_bytes=79 * 2**30,
    gemm_flops_per_s={"fp32": 40e12, "bf16": 692.3e12}, memory_bandwidth_bytes_per_s=2.68e12,
)  # fmt: skip


def test_a_cpu_is_its_measured_rates_at_an_efficiency_of_one():
    got = local_cluster(CPU)

    assert (got.local, got.nodes, got.gpus_per_node, got.gpu.device) == (True, 1, 2, "cpu")
    assert got.gpu.peak_flops_per_s["fp32"].value == 1e11
    assert got.gpu.gemm_efficiency.value == 1.0
    assert got.gpu.usable_memory_bytes.value == 10_000
    assert got.host_memory_bytes.value == 24_000
    assert got.intra_node == got.inter_node
    for figure in (got.gpu.memory_bytes, got.gpu.gemm_efficiency, got.intra_node.bandwidth_bytes_per_s):
        assert figure.basis is Basis.MEASURED
        assert figure.source.startswith("this machine")
        assert figure.date == "2026-01-01"


def test_a_gpu_of_the_catalog_keeps_its_datasheet_rates_and_takes_the_measured_shares():
    # 692.3 of 989 TFLOP/s = 0.7; 2.68 of 3.35 TB/s = 0.8
    got = local_cluster(H100).gpu

    assert got.name == "h100"
    assert got.peak_flops_per_s["bf16"].value == 989e12
    assert got.gemm_efficiency.value == pytest.approx(0.7)
    assert got.memory_efficiency.value == pytest.approx(0.8)
    assert got.gemm_efficiency.basis is Basis.MEASURED
    assert got.usable_memory_bytes.value == 79 * 2**30


def test_a_device_that_is_only_similar_to_one_of_the_catalog_is_measured():
    got = local_cluster(replace(H100, name="NVIDIA H100 80GB HBM3e")).gpu

    assert got.name == "NVIDIA H100 80GB HBM3e"
    assert got.peak_flops_per_s["bf16"].value == 692.3e12


def test_fewer_gpus_or_more_processes_can_be_asked_for():
    assert local_cluster(H100, 4).gpus == 4
    assert local_cluster(CPU, gpus=8).gpus == 8
    with pytest.raises(InputError, match="16 GPUs are asked of a machine with 8; ask for 1 to 8"):
        local_cluster(H100, 16)
    with pytest.raises(InputError):
        local_cluster(CPU, 0)


def test_a_lone_process_moves_data_at_the_rate_of_its_memory():
    got = local_cluster(replace(CPU, gpus=1, link_bandwidth_bytes_per_s=0.0)).intra_node

    assert got.bandwidth_bytes_per_s.value == 1e10
    assert "one process has no link" in got.bandwidth_bytes_per_s.source
