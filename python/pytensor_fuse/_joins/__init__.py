"""Join elimination: kernels write the streams of a join straight into its result.

From the lowest layer up: `ops` are the ops of a changed graph, `lengths` finds the lengths of
dimensions, `plans` holds the records of decisions, `producers` are the kinds of nodes that can
write a stream, `planning` decides, `replacements` and `overwriting` make nodes, `eliminate` changes
the graph and `reports` describes the changes.
"""

# PyTensor comes first: the features that its import switches on import modules of this package.
import pytensor  # noqa: F401
