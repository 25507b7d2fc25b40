"""What the package requires of the installed PyTensor, and which releases are known."""
