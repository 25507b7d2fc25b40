"""What an audit finds about what a graph is made of."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import Any

from pytensor_fuse._reports.text import count, place


class OpKind(enum.Enum):
    """What an op is for."""

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
    """An op that is neither of PyTensor nor of this package.

    Where its results are, and what it overwrites, the audit has from what the op declares. What it
    computes, and at which cost, is not known.

    Attributes
    ----------
    name
        The class of the op, with its module. A scalar op is one that kernels compute with.
    nodes
        How many nodes apply it.
    first
        The names of the first of them and of the nodes that it is inside of, outermost first.
    sizes_known
        Whether the sizes of the results of all of them are known.
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
    """What a graph is made of.

    Attributes
    ----------
    nodes
        Apply nodes, those of inner graphs among them, but for those that a kernel wraps: it is one.
    inner_nodes
        Those of inner graphs.
    kinds
        How many nodes are of which kind, the most first. Each node is of one kind.
    unknown
        The ops that the audit does not know, the most frequent first.
    """

    nodes: int
    inner_nodes: int
    kinds: dict[OpKind, int]
    unknown: tuple[UnknownOp, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        return {
            "nodes": self.nodes,
            "inner_nodes": self.inner_nodes,
            "kinds": {kind.name.lower(): n for kind, n in self.kinds.items()},
            "unknown": [{**asdict(op), "first": list(op.first)} for op in self.unknown],
        }
