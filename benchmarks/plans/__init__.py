"""Fusion problems, the best plans of them, and what a plan's cost says of its time."""
