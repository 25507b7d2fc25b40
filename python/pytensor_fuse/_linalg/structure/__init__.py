"""The structure of matrices, recognized by the form of their expressions.

Nothing here changes a graph. `docs/linalg_rules.md` has the mathematics.
"""
