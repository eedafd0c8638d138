"""Data with a source behind every number: GPUs, links, node types, clusters and models, in files beside this one."""

from pathlib import Path

FOLDER = Path(__file__).parent
GPUS = FOLDER / "gpus.yaml"
LINKS = FOLDER / "links.yaml"
NODES = FOLDER / "nodes.yaml"
CLUSTERS = FOLDER / "clusters"
MODELS = FOLDER / "models"
