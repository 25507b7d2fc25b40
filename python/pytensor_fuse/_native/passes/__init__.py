"""Passes over loop programs: loop fusion, dead code elimination, buffer placement and others."""
