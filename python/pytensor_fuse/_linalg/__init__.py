"""Cubic work on matrices: one factorization for each, and what follows from it.

`low_rank`, `cholesky_gradient`, `inverses`, `sums`, `shared_solves` and `diagonal_terms` are the
rules, functions of a graph and a node that give replacements or None. They know matrices by
`matrices` and `symmetry`, and what is cheaper by `costs`. `ops` are what a changed graph has beside
PyTensor's own. `docs/linalg.md` has the mathematics of each rule.
"""

# First of all: what is switched on once it is there imports modules of this package.
import pytensor  # noqa: F401
