"""The performance model: pure functions from columns to columns, NumPy only."""
