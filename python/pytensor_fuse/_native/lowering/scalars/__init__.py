"""Scalar ops, from the values of inputs to those of outputs."""
