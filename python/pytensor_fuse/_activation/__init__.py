"""What importing and enabling the package change in PyTensor, and when."""

# First of all: what is switched on once it is there imports modules of this package.
import pytensor  # noqa: F401
