"""Machine code against Numba and JAX: first values, calls, memory."""
