"""Records of ops: their kinds, and unknown ones."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from pytensor_fuse._reports.text import count, place


class OpKind(enum.Enum):
    """The kind of an op."""

    KERNEL = "kernel"
    REDUCTION = "reduction"
    MATRIX = "matrix product, solver or decomposition"
    INDEXING = "indexing or assignment"
    MAKING = "making or joining arrays"
    SHAPE = "shape or other view"
    RANDOM = "random numbers"
    SPARSE = "sparse"
    INNER_GRAPH = "with an inner graph"
    WRITING = "kernels writing into a join"
    SCALAR = "numbers outside of arrays"
    OTHER = "other of PyTensor"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class UnknownOp:
    """An op that is neither PyTensor's nor this package's.

    The audit takes the memory of its results, and the inputs that it overwrites, from the op's
    declarations. Its computation and cost are unknown.

    Attributes
    ----------
    name
        The class of the op, with its module. A scalar op occurs in kernels.
    nodes
        The number of nodes with the op.
    first
        The names of the nodes that enclose the first of these, outermost first, and its own.
    sizes_known
        Whether the sizes of the results of all these nodes are known.
    """

    name: str
    nodes: int
    first: tuple[str, ...]
    sizes_known: bool

    def __str__(self) -> str:
        first = place(self.first[:-1], self.first[-1])
        text = f"unknown op {self.name}, {count(self.nodes, 'node')}, first {first}"
        return text if self.sizes_known else f"{text}; the sizes of its results are not known"
