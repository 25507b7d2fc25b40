"""The data of a graph's constants: which of them a rewritten graph depends on, and substitutes."""
