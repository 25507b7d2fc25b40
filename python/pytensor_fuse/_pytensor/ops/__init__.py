"""Ops and types of PyTensor: what differs between versions, and what rewriting asks of them."""
