"""Boxes of a picture: the nodes that share each box, and its texts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from pytensor_fuse import _core
from pytensor_fuse._pictures.picture import Box, Node, Role

if TYPE_CHECKING:
    from collections.abc import Hashable

# The number of ops in the second line of a kernel.
_SHOWN_OPS = 3

# From this number on, similar nodes with the same neighbors share a box.
_BUNDLE = 5

# In pictures of more nodes, chains of unfusable nodes share a box.
_FOLDED_FROM = 60

# The role of a node, its op, and whether it is a result of the graph.
Likeness = tuple[Role, str, bool]


class Group(NamedTuple):
    """The nodes of a box, their kernel if they are one, and whether they are a chain."""

    nodes: list[int]
    kernel: int | None
    is_row: bool


def group_nodes(
    likenesses: list[Likeness], members: list[list[int]], pairs: list[tuple[int, int]]
) -> list[Group]:
    """Return the nodes of each box, the boxes in a topological order; O(nodes + edges).

    Parameters
    ----------
    likenesses
        For each node outside kernels, the key that must be equal for it to share a box.
    members
        The nodes of each kernel.
    pairs
        The nodes at the two ends of each edge.
    """
    kernel_of = {node: k for k, nodes in enumerate(members) for node in nodes}
    rows = _rows(likenesses, pairs) if len(likenesses) > _FOLDED_FROM else []
    together = [*members, *rows]
    held = {node for nodes in together for node in nodes}
    alone = [[node] for node in range(len(likenesses)) if node not in held]
    boxes = [*together, *_bundles(alone, likenesses, [*together, *alone], pairs)]
    boxes.sort(key=min)
    box_of = {node: i for i, nodes in enumerate(boxes) for node in nodes}
    between = dict.fromkeys((box_of[a], box_of[b]) for a, b in pairs if box_of[a] != box_of[b])
    sources, targets = [a for a, _ in between], [b for _, b in between]
    order = _core.Graph(len(boxes), sources, targets).toposort().tolist()
    in_row = {nodes[0] for nodes in rows}
    return [Group(boxes[i], kernel_of.get(boxes[i][0]), boxes[i][0] in in_row) for i in order]


def _rows(likenesses: list[Likeness], pairs: list[tuple[int, int]]) -> list[list[int]]:
    """Return the chains of unfusable nodes.

    Each node but the first reads only the previous one, which has no other reader: merging them
    into one box creates no cycle.
    """
    reads, readers = Counter(b for _, b in pairs), Counter(a for a, _ in pairs)

    def passes(node: int) -> bool:
        role, _, is_result = likenesses[node]
        return role is Role.UNFUSABLE and not is_result and reads[node] == readers[node] == 1

    after = {a: b for a, b in pairs if passes(a) and passes(b)}
    rows = []
    for first in sorted(after.keys() - after.values()):
        row = [first]
        while row[-1] in after:
            row.append(after[row[-1]])
        rows.append(row)
    return rows


def _bundles(
    alone: list[list[int]],
    likenesses: list[Likeness],
    boxes: list[list[int]],
    pairs: list[tuple[int, int]],
) -> list[list[int]]:
    """Merge similar nodes with the same neighbors where they are many.

    No path leads from one of them to another, or a neighbor would lead to itself: merging them
    creates no cycle.
    """
    box_of = {node: i for i, nodes in enumerate(boxes) for node in nodes}
    neighbors: list[tuple[set[int], set[int]]] = [(set(), set()) for _ in likenesses]
    for source, target in pairs:
        neighbors[source][1].add(box_of[target])
        neighbors[target][0].add(box_of[source])
    alike: dict[Hashable, list[int]] = {}
    for (node,) in alone:
        before, after = map(frozenset, neighbors[node])
        alike.setdefault((likenesses[node], before, after), []).append(node)
    bundles: list[list[int]] = []
    for nodes in alike.values():
        bundles += [nodes] if len(nodes) >= _BUNDLE else [[node] for node in nodes]
    return bundles


def labeled_box(group: Group, nodes: list[Node]) -> Box:
    """Return the box of some nodes, with its texts."""
    members, kernel, is_row = group
    first = nodes[members[0]]
    if len(members) == 1:
        return Box(tuple(members), None, first.label, first.caption)
    counts = Counter(nodes[i].label for i in members).most_common()
    shown = [f"{label} \u00d7{n}" if n > 1 else label for label, n in counts[:_SHOWN_OPS]]
    caption = ", ".join(shown) + (", \u2026" if len(counts) > _SHOWN_OPS else "")
    if kernel is not None:
        label = f"kernel {kernel}: {len(members)} nodes"
    elif is_row:
        label = f"{len(members)} nodes in a row"
    elif first.role is Role.INPUT:
        label = f"{len(members)} inputs"
    elif first.role is Role.CONSTANT:
        label = f"{len(members)} constants"
    else:
        label, caption = f"{len(members)} \u00d7 {first.label}", first.role.value
    return Box(tuple(members), kernel, label, caption)
