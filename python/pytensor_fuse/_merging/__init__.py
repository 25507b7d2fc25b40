"""Merging: of apply nodes that compute the same thing, one stays."""
