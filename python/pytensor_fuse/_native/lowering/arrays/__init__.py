"""Ops on arrays, element by element or axis by axis."""
