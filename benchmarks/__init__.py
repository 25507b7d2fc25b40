"""Reference graphs, the demo and the measurements; run them from the root of the repository."""
