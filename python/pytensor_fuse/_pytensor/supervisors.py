"""What a function must not overwrite: PyTensor keeps it in features of the graph, supervisors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.compile.aliasing import Supervisor

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph


def protected_inputs(fgraph: FunctionGraph) -> list[Variable[Any, Any]] | None:
    """Return the inputs that must stay as they are; None if the graph has no supervisor."""
    supervisors = [f for f in fgraph._features if isinstance(f, Supervisor)]
    if not supervisors:
        return None
    return [variable for supervisor in supervisors for variable in supervisor.protected]
