"""Measured runs in, error figures out."""
