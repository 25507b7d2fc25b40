"""Sorts, and searches in sorted vectors."""
