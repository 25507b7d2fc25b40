"""The ops by which kernels write into the result of a join."""
