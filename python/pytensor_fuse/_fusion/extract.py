"""Extraction of a FunctionGraph as integer arrays, and the choice of nodes that may be fused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Apply, Constant
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse import _core
from pytensor_fuse._pytensor.ops.scalar_kinds import ScalarKind, signature_kinds
from pytensor_fuse._pytensor.ops.targets import Target

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph


@dataclass(frozen=True, eq=False)
class ExtractedGraph:
    """A graph as integer arrays, with the scalar operations of its Elemwise nodes.

    Attributes
    ----------
    arrays
        Apply nodes and variables as dense ids, in topological order.
    kinds
        For each signature of an Elemwise node, the operation per element; None if the node can be
        in no kernel.
    orderings
        Pairs of node ids: orderings that features of the graph require besides the data flow.
    """

    arrays: _core.Extraction
    kinds: list[ScalarKind | None]
    orderings: list[tuple[int, int]]


def extract(fgraph: FunctionGraph) -> ExtractedGraph:
    """Turn ``fgraph`` into integer arrays; O(nodes + edges), about a microsecond per node."""
    orderings = fgraph.orderings()
    order = fgraph.toposort() if orderings else None
    arrays = _core.extract(fgraph.outputs, Elemwise, "scalar_op", Constant, order)
    return ExtractedGraph(arrays, signature_kinds(arrays), _ordering_ids(arrays, orderings))


def plan(
    graph: ExtractedGraph, target: Target, max_operands: int, effort: int | None = None
) -> _core.FusedClusters:
    """Plan the fusion of an extracted graph for ``target``; with an effort, include the search."""
    strict = [kind is not None and kind.has_c_code for kind in graph.kinds]
    # Only Numba compiles scalar ops that have no C code.
    fusable = strict
    if target is Target.NUMBA:
        fusable = [kind is not None and kind.compiles(target) for kind in graph.kinds]
    uniform = [
        variable
        for variable, constant in graph.arrays.array_constants()
        if constant.unique_value is not None
    ]
    return _core.plan_extraction(
        graph.arrays, fusable, strict, uniform, graph.orderings, max_operands, effort
    )


def _ordering_ids(
    arrays: _core.Extraction, orderings: dict[Apply[Any], list[Apply[Any]]]
) -> list[tuple[int, int]]:
    if not orderings:
        return []
    ids = {node: index for index, node in enumerate(arrays.nodes)}
    return [
        (ids[earlier], ids[node])
        for node, prerequisites in orderings.items()
        for earlier in prerequisites
        if node in ids and earlier in ids
    ]
