"""Linear algebra: structure of matrices, and shared factorizations.

- `rules`: functions of a graph and a node that return replacements, or None;
- `structure`: the structure of a matrix by the form of its expression;
- `ops`: the ops that rewritten graphs have beside PyTensor's own;
- `costs`: the comparison of two ways in floating-point operations;
- `notes`: the rules that were applied to each matrix, for `explain_linalg`;
- `structured`: the public function that declares a structure.

`docs/reference/linalg_rules.md` and `linalg_structures.md` have the mathematics of each rule.
"""

# First: the hooks that run once PyTensor is imported import modules of this package.
import pytensor  # noqa: F401
