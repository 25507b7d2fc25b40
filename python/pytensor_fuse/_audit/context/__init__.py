"""The context of an audit: a graph, how it will run, and the facts known beforehand."""
