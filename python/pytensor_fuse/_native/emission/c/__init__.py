"""C functions around machine code, for callers without Python."""
