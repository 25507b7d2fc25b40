"""Rules by which the work on a matrix shares one factorization."""
