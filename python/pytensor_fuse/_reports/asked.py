"""Arguments of reports: a compiled function or a graph."""

from __future__ import annotations

from pytensor.compile.executor import Function
from pytensor.graph.basic import Variable

from pytensor_fuse._reports.text import short, without_address


def not_a_graph(who: str, value: object) -> str:
    """Return the message for an argument that is neither a function nor a graph.

    Parameters
    ----------
    who
        The public function that was called.
    value
        The argument. If it leads to a valid one, the message says how to get that.
    """
    if isinstance(getattr(value, "f", None), Function):  # PyMC's point functions.
        hint = "; give its attribute f, which is the compiled function"
    elif hasattr(value, "compile_logp"):
        hint = "; of a PyMC model, give model.compile_logp().f, or another function of it"
    elif isinstance(value, Variable):
        hint = "; compile it with pytensor.function"
    elif hasattr(value, "unfreeze"):
        hint = "; call its unfreeze() first"
    else:
        hint = ""
    return (
        f"{who} takes a compiled function (what pytensor.function returns) or a FunctionGraph, not "
        f"{short(without_address(str(value)))}, which is of type {type(value).__name__}{hint}"
    )
