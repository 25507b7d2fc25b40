"""The structure of matrices, recognized by the form of their expressions.

Nothing here changes a graph. `docs/reference/linalg_rules.md` and `linalg_structures.md` have the
mathematics.
"""
