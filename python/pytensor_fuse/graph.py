"""Graph algorithms on integer arrays: order, ancestors, convex subgraphs, hash-consing.

Nothing here depends on PyTensor: nodes are the integers from 0 to ``n_nodes - 1``, and edges are
two arrays.

Two diamonds in a row, ``0 -> {1, 2} -> 3 -> {4, 5} -> 6``:

>>> from pytensor_fuse.graph import AncestorSets, CycleError, Graph
>>> graph = Graph(7, [0, 0, 1, 2, 3, 3, 4, 5], [1, 2, 3, 3, 4, 5, 6, 6])
>>> graph.toposort(key=[0, 5, 4, 0, 0, 0, 0]).tolist()
[0, 2, 1, 3, 4, 5, 6]

A set of nodes can be contracted to one node if it is convex: no path leaves it and comes back.

>>> graph.is_convex([0, 1]), graph.is_convex([0, 3])
(True, False)

`Graph.convex_subgraphs` fuses nodes with equal labels as long as the graph of the blocks stays
acyclic. Node 2, which may not be fused, keeps 3 out of the block of 0 and 1:

>>> graph.convex_subgraphs([0, 0, -1, 0, 0, 0, 0]).tolist()
[0, 0, 1, 2, 2, 2, 2]

`AncestorSets` answers reachability queries in constant time, also after contractions, with memory
quadratic in the number of nodes:

>>> sets = AncestorSets(graph)
>>> sets.is_ancestor(1, 6), sets.is_ancestor(1, 2)
(True, False)
>>> sets.contract([1, 2])
>>> sets.is_ancestor(1, 2)
True
>>> AncestorSets(graph.transposed()).ancestors(4).tolist()  # the descendants of 4
[4, 6]

A `CycleError` names the cycle:

>>> try:
...     Graph(3, [0, 1, 2], [1, 2, 1]).toposort()
... except CycleError as error:
...     print(error, error.nodes)
the graph has a cycle through the nodes 1 -> 2 (1, 2)

A `HashConsTable` stores each structure once, under one id. ``(x + y) * (x + y)`` has the same id
with its sum computed twice and with a shared sum:

>>> from pytensor_fuse.graph import HashConsTable
>>> table = HashConsTable()
>>> add, mul, double = (table.compound(name) for name in (b"add", b"mul", b"float64"))
>>> x, y = (table.input(position, double) for position in range(2))
>>> sums = [table.apply(add, [double], [x, y]) for _ in range(2)]
>>> sums[0] == sums[1], sums[0] == table.apply(add, [double], [y, x])
(True, False)
>>> table.apply(mul, [double], sums).digest.hex()
'c94102195da033ff3ab12af25468d8cc'
>>> terms = table.intern(
...     leaves=[x, y], ops=[add, mul], types=[double], node_ops=[0, 1], input_offsets=[0, 2, 4],
...     inputs=[0, 1, 2, 2], type_offsets=[0, 1, 2], output_types=[0, 0],
... )
>>> terms[0] == sums[0]
True

Terms stay in the table as long as an object needs them; an id is only a number:

>>> size, product = len(table), terms[1].id
>>> del terms
>>> size - len(table)
1
>>> try:
...     table.digest(product)
... except IdError as error:
...     print(error.kind)
no-term
"""

from pytensor_fuse._core import (
    AncestorSets,
    ContractionError,
    CycleError,
    EdgeError,
    Graph,
    GraphError,
    HashConsTable,
    IdError,
    MemoryLimitError,
    Term,
    Terms,
)

__all__ = [
    "AncestorSets",
    "ContractionError",
    "CycleError",
    "EdgeError",
    "Graph",
    "GraphError",
    "HashConsTable",
    "IdError",
    "MemoryLimitError",
    "Term",
    "Terms",
]
