"""Scan as a loop."""
