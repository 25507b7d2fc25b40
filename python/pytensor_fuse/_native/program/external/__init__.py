"""Functions of other libraries that programs call: BLAS, LAPACK, and NumPy's draws."""
