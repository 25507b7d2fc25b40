"""Scans by recipe, and the same loops written out in NumPy."""
