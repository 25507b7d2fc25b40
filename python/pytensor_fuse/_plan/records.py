"""Records of a fusion plan: its kernels and figures."""

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
        Distinct variables, including constants, that the nodes read from outside the kernel.
    outputs
        Results that are read outside the kernel or are outputs of the graph.
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
    """Figures of a plan. Every Elemwise node counts as a kernel.

    Attributes
    ----------
    nodes
        Apply nodes in the graph.
    fusable
        Elemwise nodes that may be fused.
    kernels_before, kernels_after
        Kernels in the graph, and in the graph after fusion.
    arrays_before, arrays_after
        Arrays that kernels read and write: for each kernel, the distinct inputs that are not
        constants, and the outputs that are read outside it.
    kernels_bound, arrays_bound
        Lower bounds: no plan of the graph has fewer kernels than ``kernels_bound``, and no plan
        with that number of kernels has fewer arrays than ``arrays_bound``.
    proven
        Whether the plan attains the bounds, which proves it optimal. A plan that does not may be
        optimal, too.
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
