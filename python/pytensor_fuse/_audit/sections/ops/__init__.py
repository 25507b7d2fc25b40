"""The section about ops: the kinds of a graph's ops, and the unknown ones."""
