"""Measured runs that ship with the package: one CSV a source, and what is assumed of it. Data only."""
