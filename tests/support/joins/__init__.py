"""Graphs with joins, compiled with and without the feature."""
