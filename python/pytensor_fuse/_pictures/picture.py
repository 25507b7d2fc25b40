"""The content of a picture of a plan, as plain data: nodes, boxes and edges with their texts.

The appearance is up to `drawing` (sizes and positions), `svg`, `dot` and `page`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytensor_fuse._pictures.texts import LABEL, cut

if TYPE_CHECKING:
    from pytensor_fuse._fusion.why_not import WhyNot
    from pytensor_fuse._pytensor.graphs.provenance import SourceLine

# The maximum length of a tooltip. Graphviz rejects strings of more than 16,384 bytes, and a
# character becomes up to five.
_LONGEST_TIP = 2000


class Role(enum.Enum):
    """The role of a node in the plan."""

    FUSED = "fused"
    ALONE = "may be fused, stays alone"
    UNFUSABLE = "cannot be fused"
    INPUT = "input"
    CONSTANT = "constant"


@dataclass(frozen=True)
class Node:
    """An apply node, an input of the graph, or a constant that is a result of the graph.

    Attributes
    ----------
    role
        The role of the node in the plan.
    op
        The printed op; empty for an input or a constant.
    label
        A short text on the node.
    names
        The names of its outputs, where they have one.
    types
        The dtype and static shape of each output.
    constants
        The constants that it reads, as texts.
    results
        The indices of the results of the whole graph that it computes.
    source_line
        The line of code that constructed it, if known.
    box
        The position of its box.
    """

    role: Role
    op: str
    label: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    constants: tuple[str, ...]
    results: tuple[int, ...]
    source_line: SourceLine | None
    box: int

    @property
    def caption(self) -> str:
        """The second line: the names of its outputs, else its constants."""
        if self.role in (Role.INPUT, Role.CONSTANT):
            return ""
        return cut(", ".join(self.names or self.constants), LABEL)

    @property
    def tip(self) -> str:
        """The tooltip, one line for each fact."""
        lines = [self.op or self.label, *self.names, *self.types]
        if self.source_line is not None:
            lines += [f"{self.source_line.file}:{self.source_line.line}", self.source_line.code]
        return cut("\n".join(cut(line) for line in lines), _LONGEST_TIP)


@dataclass(frozen=True)
class Box:
    """A kernel, a node outside kernels, a bundle of similar nodes, or a chain.

    The nodes of a bundle have the same neighbors.

    Attributes
    ----------
    nodes
        Positions of its nodes, in topological order.
    kernel
        The position of the kernel in the plan, or None.
    label, caption
        The texts on the collapsed box.
    """

    nodes: tuple[int, ...]
    kernel: int | None
    label: str
    caption: str


@dataclass(frozen=True)
class Edge:
    """An edge from a node to a reader of its outputs.

    Attributes
    ----------
    source, target
        Positions of the nodes.
    why
        Why the two do not share a kernel; None if they do, or if the source is an input.
    """

    source: int
    target: int
    why: WhyNot | None


@dataclass(frozen=True)
class Picture:
    """The content of a picture of a plan.

    Attributes
    ----------
    nodes
        The apply nodes in the order of the plan, then the inputs, then constants that are results.
    boxes
        A partition of the nodes, in a topological order.
    edges
        The edges between nodes, each pair once, in the order of their targets.
    figures
        Name, value before and value after fusion.
    paths
        For each edge whose reason is a cycle, by position: the nodes of the path, and the number
        of nodes omitted before the last of them.
    bound
        The known bound on the best plan, in short and as a sentence.
    """

    nodes: tuple[Node, ...]
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    figures: tuple[tuple[str, int, int], ...]
    paths: dict[int, tuple[tuple[int, ...], int]]
    bound: tuple[str, str]

    def box_edges(self) -> dict[tuple[int, int], list[int]]:
        """Return the edges between different boxes, as positions, by the pair of boxes."""
        edges: dict[tuple[int, int], list[int]] = {}
        for i, edge in enumerate(self.edges):
            pair = (self.nodes[edge.source].box, self.nodes[edge.target].box)
            if pair[0] != pair[1]:
                edges.setdefault(pair, []).append(i)
        return edges
