"""Rules that save cubic work on matrices."""
