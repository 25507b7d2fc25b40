"""Fusion: planning, the whole pass, the core's planner, and functions that are fused."""
