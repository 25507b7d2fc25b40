"""Scalar ops, from operand values to result values."""
