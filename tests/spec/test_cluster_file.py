import pytest

from autotune.errors import InputError
from autotune.spec.cluster_file import load_cluster
from autotune.spec.figure import Basis
from autotune.spec.hardware import gpu_named, gpu_names, gpus, links, node_types
from autotune.spec.listing import catalog_clusters, catalog_gpus, catalog_models

GIB = 2**30
WHOLE = """
nodes: 3
gpus_per_node: 4
gpu:
  name: mine
  memory: 48 GiB
  usable_memory: 44.4 GiB
  memory_bandwidth: 864 GB/s
  peak: {bf16: 362 TFLOP/s, fp32: 91.6 TFLOP/s}
  gemm_efficiency: {value: 0.7, basis: measured, source: a run of mine, date: 2024-12-31}
  memory_efficiency: 0.8
  kernel_launch: 3 us
intra_node: {name: pcie, bandwidth: 31.5 GB/s, latency: 10 us, efficiency: 0.4}
inter_node: infiniband-hdr
host_memory: 512 GiB
"""


def write(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def messages(error):
    return {fault.key: fault.message for fault in error.value.faults}


def all_figures():
    for gpu in gpus().values():
        spec = gpu.spec
        yield from spec.peak_flops_per_s.values()
        yield from (spec.memory_bytes, spec.usable_memory_bytes, spec.memory_bandwidth_bytes_per_s)
        yield from (spec.gemm_efficiency, spec.memory_efficiency, spec.kernel_launch_s)
    for link in links().values():
        yield from (link.bandwidth_bytes_per_s, link.latency_s, link.efficiency)
    for node in node_types().values():
        yield node.host_memory_bytes


def test_every_figure_of_the_catalog_has_a_source_and_a_date():
    for figure in all_figures():
        assert figure.value > 0
        assert figure.source
        assert len(figure.date) == 10


def test_peaks_are_dense():
    # NVIDIA's datasheets print 1979 (H100, bf16) and 624 (A100) with 2:4 sparsity
    assert gpus()["h100"].spec.peak_flops_per_s["bf16"].value == 989e12
    assert gpus()["h100"].spec.peak_flops_per_s["fp8"].value == 1979e12
    assert gpus()["a100"].spec.peak_flops_per_s["bf16"].value == 312e12
    assert "fp8" not in gpus()["a100"].spec.peak_flops_per_s
    assert "bf16" not in gpus()["v100"].spec.peak_flops_per_s


@pytest.mark.parametrize(("name", "gib"), [("h100", 79.1), ("v100", 31.7), ("b200", 178.4), ("h200", 139.8)])
def test_memory_is_what_a_process_gets_and_not_what_is_printed_on_the_box(name, gib):
    spec = gpus()[name].spec

    assert spec.usable_memory_bytes.value / GIB == pytest.approx(gib, abs=0.05)
    assert spec.usable_memory_bytes.value < spec.memory_bytes.value


def test_names_are_unique_and_match_exactly():
    assert len(set(gpu_names())) == len(gpu_names())
    assert gpu_named("b300") is None
    assert gpu_named("b20") is None
    for name in ("H100", "h100-80gb", "H100-SXM"):
        found = gpu_named(name)
        assert found is not None
        assert found.spec.name == "h100"


def test_a_name_means_the_usual_node_of_its_gpu():
    got = load_cluster("64x8xh100")

    assert (got.name, got.nodes, got.gpus_per_node, got.gpus) == ("64x8xh100", 64, 8, 512)
    assert got.nvlink_domain_gpus == 8
    assert got.intra_node.bandwidth_bytes_per_s.value == 450e9
    # 400 Gbit/s / 8
    assert got.inter_node.bandwidth_bytes_per_s.value == 50e9
    assert got.host_memory_bytes.value == 2048 * GIB
    assert not got.local


def test_other_numbers_of_gpus_and_nodes_are_normal():
    assert load_cluster("3x4xgh200").gpus == 12
    assert load_cluster("160x1xA100").gpus == 160
    # half of a DGX H100, so half of its memory, which is no datasheet figure any more
    half = load_cluster("2x4xh100")
    assert half.nvlink_domain_gpus == 4
    assert half.host_memory_bytes.value == 1024 * GIB
    assert half.host_memory_bytes.basis is Basis.INTERPOLATED


def test_an_nvlink_domain_may_span_nodes():
    # 18 trays of four GPUs share 72; five trays are all one domain
    assert load_cluster("36x4xgb200").nvlink_domain_gpus == 72
    assert load_cluster("5x4xgb200").nvlink_domain_gpus == 20


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("64x8xb300", r"the GPU 'b300' is not in the catalog \(did you mean 'b200'\?\).*describe it in a cluster file"),
        ("64x8xh800", "no usual node is known for h800.*write a cluster file with 'gpu: h800'"),
        ("64x8", "give NODESxGPUSxGPU such as 64x8xh100, a YAML file, local"),
        ("0x8xh100", "0 nodes of 8 GPUs is not positive"),
        ("-1x8xh100", "is not a cluster"),
        (f"{10**15}x8xh100", "is beyond 2147483647, the largest number that is read"),
        ("three-a100-node", r"did you mean 'three-a100-nodes'\?"),
        ("none.yaml", "does not exist"),
    ],
)
def test_a_wrong_name_is_refused_with_the_way_out(name, message):
    with pytest.raises(InputError, match=message):
        load_cluster(name)


def test_the_example_file_of_the_catalog_is_read():
    got = load_cluster("three-a100-nodes")

    assert (got.nodes, got.gpus_per_node, got.gpu.name) == (3, 4, "a100")
    # 50 Gbit/s / 8
    assert got.inter_node.bandwidth_bytes_per_s.value == 6.25e9
    assert got.nvlink_domain_gpus == 4


def test_a_cluster_file_may_describe_everything_itself(tmp_path):
    path = write(tmp_path, WHOLE)

    got = load_cluster(path)

    assert (got.name, got.nodes, got.gpus_per_node, got.nvlink_domain_gpus) == ("mine", 3, 4, 4)
    assert got.gpu.name == "mine"
    assert got.gpu.usable_memory_bytes.value == round(44.4 * GIB)
    assert got.gpu.peak_flops_per_s["bf16"].value == 362e12
    assert got.gpu.gemm_efficiency.basis is Basis.MEASURED
    assert got.gpu.gemm_efficiency.source == "a run of mine"
    assert got.gpu.memory_efficiency.basis is Basis.DATASHEET
    assert got.gpu.memory_efficiency.source == path
    assert got.gpu.kernel_launch_s.value == pytest.approx(3e-6)
    assert got.intra_node.name == "pcie"
    assert got.inter_node.name == "infiniband-hdr"


def test_what_a_file_leaves_out_comes_from_the_usual_node(tmp_path):
    got = load_cluster(write(tmp_path, "nodes: 2\ngpus_per_node: 8\ngpu: H100-80gb\n"))

    assert got.gpu.name == "h100"
    assert got.intra_node.name == "nvlink4"
    assert got.host_memory_bytes.value == 2048 * GIB


def test_all_faults_of_a_cluster_file_are_reported_at_once(tmp_path):
    text = WHOLE.replace("nodes: 3", "node: 3").replace("48 GiB", "48").replace("864 GB/s", "864 GB")
    text = text.replace("gemm_efficiency: {value: 0.7", "gemm_efficiency: {value: 1.7").replace(
        "kernel_launch: 3 us", ""
    )
    text = text.replace("inter_node: infiniband-hdr", "inter_node: infiniband").replace("512 GiB", "0 GiB")
    text = text.replace("gpus_per_node: 4", "gpus_per_node: true").replace("bf16: 362", "bf61: 362")

    with pytest.raises(InputError) as error:
        load_cluster(write(tmp_path, text))

    found = messages(error)
    assert set(found) == {
        "node", "nodes", "gpus_per_node", "gpu.memory", "gpu.memory_bandwidth", "gpu.peak.bf61",
        "gpu.gemm_efficiency.value", "gpu.kernel_launch", "inter_node", "host_memory",
    }  # fmt: skip
    assert "the file has 'node', did you mean 'nodes'?" in found["nodes"]
    assert found["gpu.memory"] == "is a whole number, 48; write it with its unit, for example 80 GiB"
    assert "'864 GB' has the unit 'GB'" in found["gpu.memory_bandwidth"]
    assert found["gpu.gemm_efficiency.value"] == "1.7 is not a share; it must be above 0 and at most 1"
    assert "did you mean 'infiniband-" in found["inter_node"]
    assert "is not positive" in found["host_memory"]


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("gpu:\n", "gpu: h1000\nx:\n", "gpu"),
        ("44.4 GiB", "50 GiB", "gpu.usable_memory"),
        ("{bf16: 362 TFLOP/s, fp32: 91.6 TFLOP/s}", "{}", "gpu.peak"),
        ("basis: measured", "basis: guessed", "gpu.gemm_efficiency.basis"),
        ("2024-12-31", "yesterday", "gpu.gemm_efficiency.date"),
        ("nodes: 3", "nodes: 3\nnvlink_domain_gpus: 13", "nvlink_domain_gpus"),
        ("host_memory: 512 GiB", "", "host_memory"),
    ],
)
def test_each_wrong_value_is_named_by_its_key(tmp_path, old, new, key):
    with pytest.raises(InputError) as error:
        load_cluster(write(tmp_path, WHOLE.replace(old, new)))

    assert key in messages(error)


@pytest.mark.parametrize("text", ["", "[]", "nodes: 3"])
def test_what_is_no_cluster_file_is_an_input_error(tmp_path, text):
    with pytest.raises(InputError):
        load_cluster(write(tmp_path, text))


def test_the_catalog_lists_names_that_can_be_used_with_their_sources():
    for entry in (*catalog_models(), *catalog_gpus(), *catalog_clusters()):
        assert entry.summary
        assert entry.source
    names = [entry.name for entry in catalog_clusters()]
    assert "NODESx8xh100" in names
    assert "three-a100-nodes" in names
    for name in names:
        assert load_cluster(name.replace("NODES", "2")).gpus > 0
