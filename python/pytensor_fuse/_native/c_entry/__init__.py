"""Compiled functions for callers who have no Python: in this process, and as libraries."""
