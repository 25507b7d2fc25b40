"""Linking: machine code in the place of the code of PyTensor's Numba linker."""
