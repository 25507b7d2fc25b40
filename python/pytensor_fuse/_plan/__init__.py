"""Fusion plans: the planned kernels, the reasons for their limits, and their application."""
