"""Compiled functions for callers without Python: C function pointers and shared libraries."""
