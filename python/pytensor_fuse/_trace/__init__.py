"""Traces: records of PyTensor's rewriting of each function."""
