"""Lowering of PyTensor's graphs to loop programs, by a rule for each op."""
