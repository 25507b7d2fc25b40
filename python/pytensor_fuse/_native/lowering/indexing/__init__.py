"""Indexing: reads and writes by slices, integers, index arrays and masks."""
