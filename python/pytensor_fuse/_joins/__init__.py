"""Joins whose streams are written straight into the result."""
