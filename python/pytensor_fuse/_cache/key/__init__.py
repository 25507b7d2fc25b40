"""The key of the cache: the graph, its environment, and whether a graph can be cached at all."""
