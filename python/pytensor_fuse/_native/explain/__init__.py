"""Reports on the compilation of a graph to machine code."""
