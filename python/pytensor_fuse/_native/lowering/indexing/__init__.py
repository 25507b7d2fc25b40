"""Indexing: slices, integers, index arrays and masks, to read elements and to write them."""
