"""A measured run of Llama-3 8B, and CSV files of such runs, for tests to vary."""

from pathlib import Path

from autotune.spec.measured import MeasuredRun, read_runs

ROW = {
    "source": "somebody",
    "run_id": "one",
    "model": "llama3-8b",
    "hidden": "4096",
    "layers": "32",
    "heads": "32",
    "kv_heads": "8",
    "ffn": "14336",
    "vocab": "128256",
    "seq": "8192",
    "gated_mlp": "1",
    "tied_embeddings": "0",
    "gpu": "H100-SXM-80GB",
    "gpus": "16",
    "gpus_per_node": "8",
    "intra_gbps": "3600",
    "inter_gbps": "400",
    "precision": "bf16",
    "framework": "Megatron-LM",
    "attention_kernel": "flash_attn_2",
    "global_batch": "128",
    "micro_batch": "1",
    "tp": "2",
    "pp": "2",
    "vpp": "1",
    "cp": "1",
    "ep": "1",
    "dp": "4",
    "seq_parallel": "1",
    "zero_stage": "1",
    "optimizer_sharding": "1",
    "recompute": "none",
    "pp_schedule": "1f1b",
    "step_time_s": "10.0",
    "tokens_per_s_per_gpu": "",
    "tflops_per_gpu": "",
    "mfu": "",
    "peak_memory_gib": "",
    "memory_kind": "",
    "oom": "0",
    "notes": "",
    "suspect": "",
    "grad_accum": "",
    "moe_experts": "",
    "moe_topk": "",
    "moe_ffn": "",
    "status": "",
    "source_ref": "table 1",
    "use": "calibrate",
}


def csv_of(folder: Path, *changes: dict[str, str], name: str = "runs.csv") -> Path:
    """A CSV with one row for each set of changed cells; ids are numbered unless given."""
    path = folder / name
    rows = [{**ROW, "run_id": f"run-{place}", **change} for place, change in enumerate(changes)]
    lines = [",".join(ROW), *(",".join(f'"{row[column]}"' for column in ROW) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def runs_of(folder: Path, *changes: dict[str, str]) -> list[MeasuredRun]:
    """The runs of such a CSV, none of which is skipped."""
    runs, skipped = read_runs(csv_of(folder, *changes))
    assert skipped == []
    return runs
