"""Cubic work on matrices: one factorization for each, and what follows from it.

`ops` are what a changed graph has beside PyTensor's own.
"""

# First of all: what is switched on once it is there imports modules of this package.
import pytensor  # noqa: F401
