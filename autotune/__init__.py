"""autotune searches parallel layouts for training large models."""

__version__ = "0.1.0"
