"""What became of a graph on its way to machine code, for people who ask."""
