"""What a graph lets nodes write over, as PyTensor's features and passes know it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from pytensor.compile.aliasing import Supervisor
from pytensor.tensor.rewriting.elemwise import InplaceElemwiseOptimizer

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph


def supervised_variables(fgraph: FunctionGraph) -> set[Variable[Any, Any]]:
    """Return the inputs whose memory the function must not overwrite."""
    supervisors = (f.protected for f in fgraph._features if isinstance(f, Supervisor))
    return set(chain.from_iterable(supervisors))


def overwritable_pairs(
    fgraph: FunctionGraph, node: Apply[Any]
) -> list[tuple[tuple[int, Variable[Any, Any]], tuple[int, Variable[Any, Any]]]]:
    """Return which outputs of an Elemwise PyTensor's pass would try to write over which inputs.

    Each is given by its position and itself; the destroy handler may still refuse it.
    """
    stock = InplaceElemwiseOptimizer()
    return list(stock.filter_candidate_pairs(fgraph, node, stock._get_protected_inputs(fgraph)))


def updated_inputs(
    fgraph: FunctionGraph,
) -> dict[Variable[Any, Any], Variable[Any, Any]]:
    """Return for each output that updates a shared variable the input that stands for that."""
    updates: dict[int, int] = fgraph.update_mapping or {}  # type: ignore[assignment]
    return {fgraph.outputs[i]: fgraph.inputs[j] for i, j in updates.items()}
