"""Rewriting: databases, passes and trackers, and the environment that decides about them."""
