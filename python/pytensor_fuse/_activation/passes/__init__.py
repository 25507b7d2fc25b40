"""The passes as PyTensor's databases hold them. What they do is loaded when they first run."""
