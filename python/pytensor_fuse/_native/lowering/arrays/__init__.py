"""Rules for ops on arrays, element by element or axis by axis."""
