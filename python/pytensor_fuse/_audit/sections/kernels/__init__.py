"""The section about kernels: the computations, reads and writes of each."""
