"""What importing the package does: no more than to wait for PyTensor."""
