"""What linking makes of a rewritten graph, shared by all functions that have it."""
