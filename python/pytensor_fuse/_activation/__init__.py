"""The changes of PyTensor that importing and enabling the package make, and their time."""

# First: the features that are switched on after this import import modules of this package.
import pytensor  # noqa: F401
