"""The section about matrices: work that grows with the cube of their size."""
