"""Sparse matrices: their parts, and the rules for ops on them."""
