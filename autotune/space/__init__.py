"""Which layouts exist: the rules and the enumerator."""
