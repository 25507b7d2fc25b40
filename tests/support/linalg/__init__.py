"""Graphs with linear algebra, compiled with and without the feature."""
