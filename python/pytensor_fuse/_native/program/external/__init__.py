"""External functions that programs call: BLAS, LAPACK and NumPy's random number functions."""
