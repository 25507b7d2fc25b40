"""What importing and enabling the package change in PyTensor, and when."""
