"""Where PyTensor's Numba linker is given machine code instead."""
