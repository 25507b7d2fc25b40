"""Factorizations and functions of whole matrices."""
