"""Elementwise fusion: extract -> plan -> apply."""

# PyTensor comes first: the features that its import switches on import modules of this package.
import pytensor  # noqa: F401
