"""Audits: what a compiled function or a graph costs, and where it could cost less."""
