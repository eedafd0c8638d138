"""The ranking and its renderings."""
