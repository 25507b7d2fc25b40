"""Random FunctionGraphs that shrink: their programs, and the graphs that these build."""
