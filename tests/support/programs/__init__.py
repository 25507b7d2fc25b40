"""Other processes of Python, some with another PyTensor."""
