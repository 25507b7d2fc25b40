"""Machine code inside of what Numba compiles."""
