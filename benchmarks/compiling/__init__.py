"""Whole compiles: merging, the cache, the accelerators, freezing, traces, the import."""
