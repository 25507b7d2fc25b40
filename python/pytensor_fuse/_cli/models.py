"""PyMC models: reports cover the log-density and its gradient."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

from pytensor_fuse._cli.failures import ExitCode, ReportError, one_line
from pytensor_fuse._cli.messages import step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.compile.executor import Function
    from pytensor.graph.fg import FunctionGraph


def is_model(value: object) -> bool:
    """Return whether a value is a PyMC model, which requires that PyMC has been imported."""
    pymc = sys.modules.get("pymc")
    return pymc is not None and isinstance(value, pymc.Model)


def plain(value: object) -> object:
    """Return the compiled function of a PyMC point function, and other values unchanged."""
    pymc = sys.modules.get("pymc")
    point_function = getattr(getattr(pymc, "pytensorf", None), "PointFunc", None)
    if point_function is None or not isinstance(value, point_function):
        return value
    function: object = getattr(value, "f", value)
    return function


def compiled_model(model: Any) -> Function:
    """Compile the log-density and the gradient of a model in the default mode."""
    import pytensor

    with step("compiling the log-density and its gradient"), _no_report("cannot be compiled"):
        outputs = [model.logp(), model.dlogp()]
        function: Function = pytensor.function(model.value_vars, outputs, on_unused_input="ignore")
    return function


def rewritten_model(model: Any) -> tuple[FunctionGraph, Any]:
    """Return the graph as the default mode rewrites it before fusion, and the mode."""
    from pytensor.compile.mode import get_default_mode
    from pytensor.compile.sharedvalue import SharedVariable
    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.traversal import graph_inputs

    from pytensor_fuse._pytensor.rewriting.databases import rewriters_before_fusion

    with step("rewriting the log-density and its gradient"), _no_report("cannot be rewritten"):
        outputs = [model.logp(), model.dlogp()]
        shared = [v for v in graph_inputs(outputs) if isinstance(v, SharedVariable)]
        fgraph = FunctionGraph([*model.value_vars, *shared], outputs, clone=True)
        mode = get_default_mode()
        rewriters_before_fusion(mode).rewrite(fgraph)
    return fgraph, mode


@contextlib.contextmanager
def _no_report(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        message = f"the model {what}: {one_line(error)}"
        raise ReportError(ExitCode.CANNOT_REPORT, message) from error
