"""Audits: the costs of a compiled function or a graph, and possible savings."""
