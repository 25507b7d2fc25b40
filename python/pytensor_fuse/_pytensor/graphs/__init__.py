"""Graphs: edits, features, inner graphs, and the order in which nodes run."""
