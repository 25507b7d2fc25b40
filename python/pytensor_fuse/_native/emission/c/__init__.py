"""Functions of C round machine code, for callers that need no Python."""
