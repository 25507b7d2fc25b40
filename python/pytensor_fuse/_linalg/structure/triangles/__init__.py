"""Triangular matrices: masks, the diagonals that are written and read, triangular solves."""
