"""What the package requires of the installed PyTensor, and the releases that are known."""
