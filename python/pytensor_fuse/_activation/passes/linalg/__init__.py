"""The feature `linalg` in PyTensor's databases."""
