"""Measured runs in, named factors of the cost model out."""
