"""The passes in PyTensor's databases. Their implementations are loaded when they first run."""
