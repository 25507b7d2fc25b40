"""Linking and calls: thunks, Numba, C, and functions that other packages compile."""
