"""Merging: of apply nodes that compute the same thing, one stays."""

# First of all: what is switched on once it is there imports modules of this package.
import pytensor  # noqa: F401
