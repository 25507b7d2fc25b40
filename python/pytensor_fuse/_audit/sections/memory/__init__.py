"""The section about memory: allocations, copies, and work in place."""
