"""Writing out: the answer of an operation from what was read."""
