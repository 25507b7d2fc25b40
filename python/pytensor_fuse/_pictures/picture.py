"""What a picture of a plan shows, as plain data: nodes, boxes and edges, each with its texts.

How it looks is for `drawing` (sizes and places), `svg`, `dot` and `page` to say.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytensor_fuse._pictures.texts import LABEL, cut

if TYPE_CHECKING:
    from pytensor_fuse._fusion.why_not import WhyNot
    from pytensor_fuse._pytensor.provenance import SourceLine

# Most characters of several texts together. Graphviz refuses strings of more than 16,384 bytes,
# and a character becomes up to five.
_LONGEST_TIP = 2000


class Role(enum.Enum):
    """What a node is to the plan."""

    FUSED = "fused"
    ALONE = "may be fused, stays alone"
    UNFUSABLE = "cannot be fused"
    INPUT = "input"
    CONSTANT = "constant"


@dataclass(frozen=True)
class Node:
    """An apply node, an input of the graph, or a constant that is a result of it.

    Attributes
    ----------
    role
        What it is to the plan.
    op
        The op as it prints; empty for an input or a constant.
    label
        What is written on it, short.
    names
        Names of its results that have one.
    types
        Dtype and static shape of each result.
    constants
        The constants that it reads, as texts.
    results
        Which results of the whole graph it computes, from 0.
    source_line
        Where it was made, if that is known.
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
        """A second line: the names of its results, else its constants."""
        if self.role in (Role.INPUT, Role.CONSTANT):
            return ""
        return cut(", ".join(self.names or self.constants), LABEL)

    @property
    def tip(self) -> str:
        """What a viewer shows over it, a line for each thing."""
        lines = [self.op or self.label, *self.names, *self.types]
        if self.source_line is not None:
            lines += [f"{self.source_line.file}:{self.source_line.line}", self.source_line.code]
        return cut("\n".join(cut(line) for line in lines), _LONGEST_TIP)


@dataclass(frozen=True)
class Box:
    """A kernel, a node that is in none, or several: alike and with the same neighbors, or in a row.

    Attributes
    ----------
    nodes
        Positions of the nodes in it, in topological order.
    kernel
        The position of the kernel in the plan, or None.
    label, caption
        What is written on it while it is collapsed.
    """

    nodes: tuple[int, ...]
    kernel: int | None
    label: str
    caption: str


@dataclass(frozen=True)
class Edge:
    """A node that reads another.

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
    """A plan as people see it.

    Attributes
    ----------
    nodes
        The apply nodes in the order of the plan, then the inputs, then constants that are results.
    boxes
        Each holds some of the nodes; every node is in one. A topological order.
    edges
        What nodes read, each pair once, in the order of their targets.
    figures
        Name, value before and value after fusion.
    paths
        For each edge whose reason is a cycle, by position, the nodes of the path, and how many
        are left out before the last of them.
    bound
        What is known of the best plan that there may be, in short and as a sentence.
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
