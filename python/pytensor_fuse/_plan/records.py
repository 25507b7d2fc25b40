"""What a plan is made of."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Variable


@dataclass(frozen=True, eq=False)
class Kernel:
    """Nodes that become one kernel.

    Attributes
    ----------
    nodes
        Elemwise nodes of the graph, in topological order.
    inputs
        Distinct variables that they read from elsewhere, constants among them.
    outputs
        Their results that are read elsewhere or are outputs of the graph.
    """

    nodes: tuple[Apply[Any], ...]
    inputs: tuple[Variable[Any, Any], ...]
    outputs: tuple[Variable[Any, Any], ...]

    def __str__(self) -> str:
        ops = Counter(str(node.op).lower() for node in self.nodes)
        names = ", ".join(f"{op} x{n}" if n > 1 else op for op, n in sorted(ops.items()))
        sizes = f"{len(self.nodes)} nodes, {len(self.inputs)} in, {len(self.outputs)} out"
        return f"{sizes}: {names}"


@dataclass(frozen=True)
class PlanStats:
    """Figures of a plan. A kernel is any Elemwise node.

    Attributes
    ----------
    nodes
        Apply nodes in the graph.
    fusable
        Elemwise nodes that may be fused.
    kernels_before, kernels_after
        Kernels in the graph, and in the graph after fusion.
    arrays_before, arrays_after
        Arrays that kernels read and write: for each the distinct inputs that are not constants,
        and the outputs that are read elsewhere.
    kernels_bound, arrays_bound
        What no plan of the graph is better than: none has fewer kernels than ``kernels_bound``, and
        none with that few has fewer arrays than ``arrays_bound``.
    proven
        Whether the plan comes up to the bounds, so that there is none better. If not, there may be
        none all the same.
    """

    nodes: int
    fusable: int
    kernels_before: int
    kernels_after: int
    arrays_before: int
    arrays_after: int
    kernels_bound: int
    arrays_bound: int
    proven: bool
