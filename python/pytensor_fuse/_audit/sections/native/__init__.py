"""The section about this package's machine code: whether the graph is, and the obstacles."""
