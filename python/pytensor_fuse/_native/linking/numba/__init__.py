"""Machine code inside of functions that Numba compiles."""
