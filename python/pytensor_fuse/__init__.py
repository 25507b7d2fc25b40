"""Fast Elemwise fusion planning for PyTensor, in Rust."""
