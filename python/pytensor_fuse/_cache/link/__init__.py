"""Results of linking a rewritten graph, shared by all of its functions."""
