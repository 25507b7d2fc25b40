"""Linear systems, and the factorizations that solve them."""
