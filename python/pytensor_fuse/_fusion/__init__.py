"""Elementwise fusion: extract -> plan -> apply."""

# First of all: what is switched on once it is there imports modules of this package.
import pytensor  # noqa: F401
