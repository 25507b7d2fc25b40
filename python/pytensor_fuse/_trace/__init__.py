"""Traces: what PyTensor's rewriting did for a function."""
