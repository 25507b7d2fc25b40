"""What a picture of a plan shows, as plain data: nodes, boxes and edges, each with its texts.

How it looks is for `_drawing` (sizes and places), `_svg`, `_dot` and `_plan_page` to say.
"""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.tensor.type import TensorType

from pytensor_fuse import _core
from pytensor_fuse._fusion.why_not import Unfusable, WhyNot, shown_steps, why_not
from pytensor_fuse._pytensor.provenance import SourceLine, line_that_made

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pytensor.graph.basic import Variable

    from pytensor_fuse._fusion.extract import ExtractedGraph
    from pytensor_fuse._pytensor.targets import Target

# Most characters of a label; what is longer ends in an ellipsis.
_LABEL = 22

# Most characters of a text that could be of any length, such as a Composite or a constant.
LONGEST = 300

# Most characters of several texts together. Graphviz refuses strings of more than 16,384 bytes,
# and a character becomes up to five.
_LONGEST_TIP = 2000

# How many ops the second line of a kernel names.
_SHOWN_OPS = 3

# So many nodes that are alike and have the same neighbours share a box.
_BUNDLE = 5


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
    trace
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
    trace: SourceLine | None
    box: int

    @property
    def caption(self) -> str:
        """A second line: the names of its results, else its constants."""
        if self.role in (Role.INPUT, Role.CONSTANT):
            return ""
        return cut(", ".join(self.names or self.constants), _LABEL)

    @property
    def tip(self) -> str:
        """What a viewer shows over it, a line for each thing."""
        where = [f"{self.trace.file}:{self.trace.line}", self.trace.code] if self.trace else []
        lines = [self.op or self.label, *self.names, *self.types, *where]
        return cut("\n".join(cut(line) for line in lines), _LONGEST_TIP)


@dataclass(frozen=True)
class Box:
    """A kernel, a node that is in none, or several that are alike and have the same neighbours.

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
    """

    nodes: tuple[Node, ...]
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    figures: tuple[tuple[str, int, int], ...]
    paths: dict[int, tuple[tuple[int, ...], int]]

    def box_edges(self) -> dict[tuple[int, int], list[int]]:
        """Return the edges between different boxes, as positions, by the pair of boxes."""
        edges: dict[tuple[int, int], list[int]] = {}
        for i, edge in enumerate(self.edges):
            pair = (self.nodes[edge.source].box, self.nodes[edge.target].box)
            if pair[0] != pair[1]:
                edges.setdefault(pair, []).append(i)
        return edges


def picture(
    graph: ExtractedGraph,
    clusters: _core.FusedClusters,
    target: Target,
    max_operands: int,
) -> Picture:
    """Describe a plan; O(nodes + edges), and what `why_not` takes for each edge."""
    arrays = graph.arrays
    applies, variables = arrays.nodes, arrays.variables
    reads = [arrays.inputs(i) for i in range(len(applies))]
    makes = [arrays.outputs(i) for i in range(len(applies))]
    owner = {variable: i for i, row in enumerate(makes) for variable in row}
    leaves = dict.fromkeys(
        variable
        for row in (*reads, arrays.results)
        for variable in row
        if variable not in owner and not isinstance(variables[variable], Constant)
    )
    # Nodes tell of the constants that they read: these are results by themselves.
    constants = dict.fromkeys(
        variable for variable in arrays.results if isinstance(variables[variable], Constant)
    )
    leaves |= constants
    node_of = owner | {variable: len(applies) + i for i, variable in enumerate(leaves)}
    results: dict[int, list[int]] = {}
    for i, variable in enumerate(arrays.results):
        if variable in node_of:
            results.setdefault(node_of[variable], []).append(i)

    pairs = list(
        dict.fromkeys(
            (node_of[variable], i)
            for i, row in enumerate(reads)
            for variable in row
            if variable in node_of and variable not in constants
        )
    )
    members = [nodes for nodes, _, _ in clusters.clusters()]
    fused = {node for nodes in members for node in nodes}
    unfusable = Unfusable(graph, target)
    texts = _Texts()
    ops = [unfusable.texts(apply.op) for apply in applies]
    roles = [
        Role.FUSED if i in fused else Role.UNFUSABLE if unfusable.reason(i) else Role.ALONE
        for i in range(len(applies))
    ]
    likenesses = [
        (role, op, i in results) for i, (role, op) in enumerate(zip(roles, ops, strict=True))
    ]
    leaf_roles = [Role.CONSTANT if v in constants else Role.INPUT for v in leaves]
    likenesses += [
        (role, "", node_of[variable] in results)
        for role, variable in zip(leaf_roles, leaves, strict=True)
    ]
    box_nodes, kernels = _boxes(likenesses, members, pairs)
    box_of = {node: i for i, nodes in enumerate(box_nodes) for node in nodes}

    nodes = [
        Node(
            role=roles[i],
            op=ops[i],
            label=_short(ops[i]),
            names=tuple(str(variables[v].name) for v in makes[i] if variables[v].name),
            types=tuple(texts.type(variables[v].type) for v in makes[i]),
            constants=tuple(
                texts.constant(variables[v]) for v in reads[i] if isinstance(variables[v], Constant)
            ),
            results=tuple(results.get(i, ())),
            trace=line_that_made(variables[v] for v in makes[i]),
            box=box_of[i],
        )
        for i in range(len(applies))
    ]
    for role, variable in zip(leaf_roles, leaves, strict=True):
        leaf = variables[variable]
        i = node_of[variable]
        label = (
            texts.constant(leaf) if role is Role.CONSTANT else leaf.name or texts.type(leaf.type)
        )
        nodes.append(
            Node(
                role=role,
                op="",
                label=cut(str(label), _LABEL),
                names=(str(leaf.name),) if leaf.name else (),
                types=(texts.type(leaf.type),),
                constants=(),
                results=tuple(results.get(i, ())),
                trace=line_that_made([leaf]),
                box=box_of[i],
            )
        )

    between = [(a, b) for a, b in pairs if a < len(applies) and box_of[a] != box_of[b]]
    reasons = dict(
        zip(between, why_not(graph, clusters, target, max_operands, between), strict=True)
    )
    position = {apply: i for i, apply in enumerate(applies)}
    edges = tuple(Edge(*pair, reasons.get(pair)) for pair in pairs)
    paths = {}
    for i, edge in enumerate(edges):
        if edge.why is not None and edge.why.path:
            # All of all paths would be quadratic in the graph.
            shown, left_out = shown_steps(edge.why.path)
            paths[i] = (tuple(position[node] for node in shown), left_out)
    figures = (
        ("kernels", clusters.before[0], clusters.after[0]),
        ("arrays read and written", clusters.before[1], clusters.after[1]),
        ("nodes", len(applies), len(applies) - len(fused) + len(members)),
    )
    boxes = tuple(_box(box, kernel, nodes) for box, kernel in zip(box_nodes, kernels, strict=True))
    return Picture(tuple(nodes), boxes, edges, figures, paths)


def _boxes(
    likenesses: list[tuple[Role, str, bool]],
    members: list[list[int]],
    pairs: list[tuple[int, int]],
) -> tuple[list[list[int]], list[int | None]]:
    """Return the nodes of each box, the boxes in a topological order, and their kernels."""
    kernel_of = {node: k for k, nodes in enumerate(members) for node in nodes}
    alone = [[node] for node in range(len(likenesses)) if node not in kernel_of]
    boxes = [*members, *_bundles(alone, likenesses, [*members, *alone], pairs)]
    boxes.sort(key=min)
    box_of = {node: i for i, nodes in enumerate(boxes) for node in nodes}
    between = dict.fromkeys((box_of[a], box_of[b]) for a, b in pairs if box_of[a] != box_of[b])
    sources, targets = [a for a, _ in between], [b for _, b in between]
    order = _core.Graph(len(boxes), sources, targets).toposort().tolist()
    return [boxes[i] for i in order], [kernel_of.get(boxes[i][0]) for i in order]


def _bundles(
    alone: list[list[int]],
    likenesses: list[tuple[Role, str, bool]],
    boxes: list[list[int]],
    pairs: list[tuple[int, int]],
) -> list[list[int]]:
    """Put nodes that are alike, and have the same neighbours, together where they are many.

    None of them leads to another, or a neighbour would lead to itself: no cycle comes of it.
    """
    box_of = {node: i for i, nodes in enumerate(boxes) for node in nodes}
    neighbours: list[tuple[set[int], set[int]]] = [(set(), set()) for _ in likenesses]
    for source, target in pairs:
        neighbours[source][1].add(box_of[target])
        neighbours[target][0].add(box_of[source])
    alike: dict[Hashable, list[int]] = {}
    for (node,) in alone:
        before, after = map(frozenset, neighbours[node])
        alike.setdefault((likenesses[node], before, after), []).append(node)
    bundles: list[list[int]] = []
    for nodes in alike.values():
        bundles += [nodes] if len(nodes) >= _BUNDLE else [[node] for node in nodes]
    return bundles


def _box(members: list[int], kernel: int | None, nodes: list[Node]) -> Box:
    first = nodes[members[0]]
    if len(members) == 1:
        return Box(tuple(members), None, first.label, first.caption)
    counts = Counter(nodes[i].label for i in members).most_common()
    shown = [f"{label} \u00d7{n}" if n > 1 else label for label, n in counts[:_SHOWN_OPS]]
    caption = ", ".join(shown) + (", \u2026" if len(counts) > _SHOWN_OPS else "")
    if kernel is not None:
        label = f"kernel {kernel}: {len(members)} nodes"
    elif first.role is Role.INPUT:
        label = f"{len(members)} inputs"
    elif first.role is Role.CONSTANT:
        label = f"{len(members)} constants"
    else:
        label, caption = f"{len(members)} \u00d7 {first.label}", first.role.value
    return Box(tuple(members), kernel, label, caption)


class _Texts:
    """Texts of types and constants; many nodes share one."""

    def __init__(self) -> None:
        self._types: dict[Any, str] = {}

    def type(self, type_: Any) -> str:
        try:
            if type_ not in self._types:
                self._types[type_] = _type_text(type_)
            return self._types[type_]
        except TypeError:  # Equality without a hash.
            return _type_text(type_)

    def constant(self, variable: Variable[Any, Any]) -> str:
        if variable.name:
            return str(variable.name)
        data: Any = getattr(variable, "data", None)
        # Sparse matrices have a size too: how many values they store.
        if isinstance(data, (np.ndarray, np.generic)) and data.size == 1:
            try:
                value = data.item()
                return cut(f"{value:.6g}" if isinstance(value, float) else str(value))
            except ValueError:  # An integer of more digits than Python writes.
                pass
        return self.type(variable.type)


def _type_text(type_: Any) -> str:
    if not isinstance(type_, TensorType):
        return str(type_)
    lengths = ["?" if length is None else str(length) for length in type_.shape]
    if len(lengths) == 1:
        lengths.append("")
    return f"{type_.dtype} ({', '.join(lengths).rstrip()})"


def _short(op: str) -> str:
    """Shorten the text of an op: its properties are what can be missed first."""
    head, brace, _ = op.partition("{")
    return cut(f"{head}{{\u2026}}" if brace and len(op) > _LABEL else op, _LABEL)


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text of at most that many characters; what is left out shows as an ellipsis."""
    return text if len(text) <= longest else text[: longest - 1] + "\u2026"
