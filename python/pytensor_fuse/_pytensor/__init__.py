"""The only place that touches PyTensor's private parts: facts, edits and patches of its objects."""
