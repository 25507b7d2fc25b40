"""Elementwise fusion: extract -> plan -> apply."""
