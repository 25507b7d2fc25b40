"""Patches: how a change in PyTensor is prepared, applied and undone."""
