"""The passes as PyTensor's databases hold them. What they do is loaded when they first run."""

# First of all: what is switched on once it is there imports modules of this package.
import pytensor  # noqa: F401
