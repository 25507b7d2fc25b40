"""Findings about the ops of a graph."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import Any

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


@dataclass(frozen=True)
class OpsRecord:
    """The ops of a graph.

    Attributes
    ----------
    nodes
        The number of apply nodes, including inner graphs; a kernel counts as one.
    inner_nodes
        The number of those in inner graphs.
    kinds
        The number of nodes of each kind, the most frequent first. Each node has one kind.
    unknown
        The unknown ops, the most frequent first.
    """

    nodes: int
    inner_nodes: int
    kinds: dict[OpKind, int]
    unknown: tuple[UnknownOp, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the findings in plain types, as in JSON."""
        return {
            "nodes": self.nodes,
            "inner_nodes": self.inner_nodes,
            "kinds": {kind.name.lower(): n for kind, n in self.kinds.items()},
            "unknown": [{**asdict(op), "first": list(op.first)} for op in self.unknown],
        }
