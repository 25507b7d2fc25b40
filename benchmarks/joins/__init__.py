"""Streams that are written straight into the joined buffer."""
