"""The section about Numba's cache: whether other processes can reuse the compilation."""
