"""The only place that touches PyTensor's private parts: facts, edits and patches of its objects."""

# First of all: what is switched on once it is there imports modules of this package.
import pytensor  # noqa: F401
