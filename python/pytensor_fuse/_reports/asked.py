"""Arguments of reports: a compiled function or a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from pytensor.compile.executor import Function
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph

from pytensor_fuse._pytensor.linking.known_runs import evaluated_by
from pytensor_fuse._reports.text import short, without_address

if TYPE_CHECKING:
    GraphLike: TypeAlias = "Function | FunctionGraph | Variable[Any, Any]"


def function_or_graph(who: str, given: object) -> Function | FunctionGraph:
    """Return the function or graph that an argument stands for.

    A point function of PyMC holds a function, and a variable that has been evaluated has one.

    Parameters
    ----------
    who
        The public function that was called.
    given
        Its argument.

    Raises
    ------
    TypeError
        If the argument stands for neither. If it leads to a valid one, the message says how to get
        that.
    """
    value = given
    if not isinstance(value, Function) and isinstance(getattr(value, "f", None), Function):
        value = getattr(value, "f", None)
    if isinstance(value, Variable):
        value = evaluated_by(value)
    if isinstance(value, Function | FunctionGraph):
        return value
    if hasattr(given, "compile_logp"):
        hint = "; of a PyMC model, give model.compile_logp(), or another function of it"
    elif isinstance(given, Variable):
        hint = "; compile it with pytensor.function"
    elif hasattr(given, "unfreeze"):
        hint = "; call its unfreeze() first"
    else:
        hint = ""
    raise TypeError(
        f"{who} takes a compiled function (what pytensor.function returns) or a FunctionGraph, not "
        f"{short(without_address(str(given)))}, which is of type {type(given).__name__}{hint}"
    )


def graph_of(value: Function | FunctionGraph) -> FunctionGraph:
    """Return the graph of a function, or the graph itself."""
    return value.maker.fgraph if isinstance(value, Function) else value


def subject(value: object) -> str:
    """Return what a report is about: a graph, or a function with its name, if any."""
    if not isinstance(value, Function):
        return "a graph"
    return "a function" if value.name is None else f"the function {short(value.name)}"
