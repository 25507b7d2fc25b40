"""Reasons why nodes do not share a kernel."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pytensor.tensor.elemwise import Elemwise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Apply

    from pytensor_fuse import _core
    from pytensor_fuse._fusion.extract import ExtractedGraph
    from pytensor_fuse._pytensor.ops.targets import Target

_T = TypeVar("_T")

# The most steps of a path that a text lists.
_SHOWN_STEPS = 30


class Reason(enum.Enum):
    """Reasons why two nodes do not share a kernel."""

    SAME_KERNEL = "they share a kernel"
    ALONE = "one node, which shares a kernel with no other"
    NOT_ELEMWISE = "not an Elemwise node"
    SEVERAL_OUTPUTS = "several outputs"
    CANNOT_COMPILE = "the target cannot compile it inside a kernel"
    OTHER_BROADCAST_PATTERN = "other broadcast pattern"
    NOT_CONNECTED = (
        "not connected: neither kernel reads the other, and they share no input with the broadcast "
        "pattern of their results (constants of a single value do not count)"
    )
    CYCLE = "would make a cycle"
    OPERAND_LIMIT = "operand limit"
    NOT_TRIED = "could share a kernel, but the search did not try that"


@dataclass(frozen=True, eq=False)
class WhyNot:
    """The reason why two nodes do not share a kernel.

    Attributes
    ----------
    reason
        The first reason found, in the order of `Reason`.
    culprit
        The node to blame: for a cycle, the first node of the path that is in neither kernel; for
        other reasons, the one of the two nodes that is concerned, or None if it is the pair.
    path
        For a cycle, the nodes from one kernel to the other; neighbors in it are a node and a
        client, or two nodes of one kernel. Empty otherwise.
    detail
        The particulars as text; nodes are named by their ops.
    """

    reason: Reason
    culprit: Apply[Any] | None
    path: tuple[Apply[Any], ...]
    detail: str

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.detail}" if self.detail else self.reason.value


def why_not(
    graph: ExtractedGraph,
    clusters: _core.FusedClusters,
    target: Target,
    max_operands: int,
    pairs: Sequence[tuple[int, int]],
) -> list[WhyNot]:
    """Return for each pair of node ids why the two do not share a kernel.

    Notes
    -----
    O(nodes + edges), plus for each pair the part of the graph between its kernels in topological
    order.
    """
    unfusable = Unfusable(graph, target)
    nodes, texts = unfusable.nodes, unfusable.texts
    answers = clusters.explain_pairs(pairs)
    return [
        unfusable.either(pair) or _answer(nodes, texts, pair, answer, max_operands)
        for pair, answer in zip(pairs, answers, strict=True)
    ]


def shown_steps(path: tuple[_T, ...]) -> tuple[tuple[_T, ...], int]:
    """Return the steps of a path to show, and the number of steps omitted before its last."""
    left_out = len(path) - _SHOWN_STEPS
    return (path, 0) if left_out <= 0 else (path[: _SHOWN_STEPS - 1] + path[-1:], left_out)


class OpTexts:
    """Cached texts of ops, since many nodes share an op."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[object, str]] = {}

    def __call__(self, op: object) -> str:
        # By id, with the op kept alive, since some ops cannot be hashed.
        if id(op) not in self._texts:
            self._texts[id(op)] = (op, str(op))
        return self._texts[id(op)][1]


class Unfusable:
    """The nodes of a graph that can be in no kernel of a target."""

    def __init__(self, graph: ExtractedGraph, target: Target) -> None:
        self.nodes = graph.arrays.nodes
        self.texts = OpTexts()
        self._signatures = graph.arrays.signatures
        self._compiles = [kind is not None and kind.compiles(target) for kind in graph.kinds]

    def reason(self, node_id: int) -> Reason | None:
        """Return why a node can be in no kernel, or None if it can."""
        node = self.nodes[node_id]
        if not isinstance(node.op, Elemwise):
            return Reason.NOT_ELEMWISE
        if len(node.outputs) != 1:
            return Reason.SEVERAL_OUTPUTS
        if not self._compiles[self._signatures[node_id]]:
            return Reason.CANNOT_COMPILE
        return None

    def either(self, pair: tuple[int, int]) -> WhyNot | None:
        """Return an answer that blames the first node that can be in no kernel, if there is one."""
        for i in pair:
            if (reason := self.reason(i)) is not None:
                # The op instead of the node, which prints with its operands: there may be
                # thousands, and they change with the graph.
                node = self.nodes[i]
                return WhyNot(reason, node, (), self.texts(node.op))
        return None


def _answer(
    nodes: list[Apply[Any]],
    texts: OpTexts,
    pair: tuple[int, int],
    answer: tuple[str, list[int], int],
    max_operands: int,
) -> WhyNot:
    verdict, path_ids, operands = answer
    path = tuple(nodes[i] for i in path_ids)
    match verdict:
        case "together":
            return WhyNot(Reason.SAME_KERNEL, None, (), "")
        case "alone":
            return WhyNot(Reason.ALONE, None, (), "")
        case "no group" | "other group":
            culprit = path[0] if path else None
            patterns = [nodes[i].outputs[0].type.broadcastable for i in pair]
            detail = f"{patterns[0]} and {patterns[1]}"
            return WhyNot(Reason.OTHER_BROADCAST_PATTERN, culprit, (), detail)
        case "not connected":
            return WhyNot(Reason.NOT_CONNECTED, None, (), "")
        case "cycle":
            shown, left_out = shown_steps(path)
            steps = [texts(node.op) for node in shown]
            if left_out:
                steps.insert(-1, f"... ({left_out} more)")
            detail = " -> ".join(steps)
            return WhyNot(Reason.CYCLE, path[1], path, detail)
        case "operand limit":
            detail = f"{operands} operands together, more than {max_operands}"
            return WhyNot(Reason.OPERAND_LIMIT, None, (), detail)
        case _:
            return WhyNot(Reason.NOT_TRIED, None, (), "")
