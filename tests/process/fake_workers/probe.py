"""Answers `probe --out FILE [--gpus N]` as SCENARIO says."""

import json
import os
import sys
import time
from pathlib import Path

out = Path(sys.argv[sys.argv.index("--out") + 1])
match os.environ["SCENARIO"]:
    case "good" | "slow" as scenario:
        time.sleep(1 if scenario == "slow" else 0)
        gpus = int(sys.argv[sys.argv.index("--gpus") + 1]) if "--gpus" in sys.argv else 1
        probe = {
            "device": "cpu", "name": "a fast one", "gpus": gpus, "cores": 2, "memory_bytes": 10,
            "usable_memory_bytes": 9, "host_memory_bytes": 20, "gemm_flops_per_s": {"fp32": 1e9},
            "memory_bandwidth_bytes_per_s": 1e9,
            "link_bandwidth_bytes_per_s": 1e8, "link_latency_s": 1e-5, "kernel_launch_s": 1e-6,
            "versions": {"torch": "2.13.0"}, "date": "2026-01-01",
        }  # fmt: skip
        out.write_text(json.dumps(probe))
    case "garbage":
        out.write_text('{"device": "abacus"}')
    case "hang":
        time.sleep(300)
    case "crash":
        msg = "no CUDA driver"
        raise RuntimeError(msg)
