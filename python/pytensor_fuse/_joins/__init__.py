"""Joins whose streams are written straight into the result.

The lowest first: `ops` are what a changed graph has, `lengths` and `plans` what is known and
decided of a join, `producers` what can write a stream, `planning` decides, `replacements` and
`overwriting` make nodes, `eliminate` changes the graph and `reports` say so. `rewriter` holds the
passes that PyTensor's databases list, which talk through a `context`.
"""

# First of all: what is switched on once it is there imports modules of this package.
import pytensor  # noqa: F401
