"""Variables that may be overwritten: those that PyTensor protects, and those its pass may take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.compile.aliasing import Supervisor
from pytensor.tensor.rewriting.elemwise import InplaceElemwiseOptimizer

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph


def overwritable_pairs(
    fgraph: FunctionGraph, node: Apply[Any]
) -> list[tuple[tuple[int, Variable[Any, Any]], tuple[int, Variable[Any, Any]]]]:
    """Return which outputs of an Elemwise PyTensor's pass would try to write over which inputs.

    Each variable comes with its position; the destroy handler may still refuse it.
    """
    stock = InplaceElemwiseOptimizer()
    return list(stock.filter_candidate_pairs(fgraph, node, stock._get_protected_inputs(fgraph)))


def updated_inputs(fgraph: FunctionGraph) -> dict[Variable[Any, Any], Variable[Any, Any]]:
    """Return, for each output that updates a shared variable, the input for that variable."""
    updates: dict[int, int] = fgraph.update_mapping or {}  # type: ignore[assignment]
    return {fgraph.outputs[i]: fgraph.inputs[j] for i, j in updates.items()}


def protected_inputs(fgraph: FunctionGraph) -> list[Variable[Any, Any]] | None:
    """Return the inputs that must not be overwritten; None if the graph has no supervisor."""
    supervisors = [f for f in fgraph._features if isinstance(f, Supervisor)]
    if not supervisors:
        return None
    return [variable for supervisor in supervisors for variable in supervisor.protected]
