"""The only package that touches PyTensor's private parts: facts about it, edits and patches."""

# Imported first: patches that wait for PyTensor import modules of this package once it is loaded.
import pytensor  # noqa: F401
