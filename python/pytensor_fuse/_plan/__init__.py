"""Fusion plans: what would be fused, why not more, and the way to apply it."""
