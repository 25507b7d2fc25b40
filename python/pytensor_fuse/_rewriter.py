"""What PyTensor's rewriting sees of a run of the pass: its profile, and its failure.

PyTensor is not imported here at import time: see `pytensor_fuse._startup`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor_fuse._core import __version__
from pytensor_fuse._errors import FusionError

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph

ISSUES = "https://github.com/pytensor-fuse/pytensor-fuse/issues"


def fuse(fgraph: FunctionGraph, reason: str) -> tuple[int, int]:
    """Run the pass on ``fgraph``; see `pytensor_fuse._fuse.fuse`."""
    # A program that compiles nothing does not pay for loading the planner.
    from pytensor_fuse._fuse import fuse as run

    return run(fgraph, reason)


def fuse_profiled(fgraph: FunctionGraph, reason: str) -> tuple[Any, ...]:
    """Run the pass on ``fgraph`` for PyTensor's rewriters.

    Returns
    -------
    tuple
        What PyTensor's own pass returns after the rewriter itself: the kernels made, the nodes
        replaced, the replacements that were inconsistent (none), the seconds spent validating and
        in the callbacks of features, in all and each, if the graph is profiled, and the seconds
        spent sorting (unknown).

    Raises
    ------
    FusionError
        If the pass failed. ``fgraph`` is then as it was. PyTensor logs the error and compiles on,
        or raises it, as its option ``on_opt_error`` says.
    """
    profile = fgraph.profile
    if profile:
        validate_before = profile.validate_time
        callback_before = fgraph.execute_callbacks_time
        callbacks_before = fgraph.execute_callbacks_times.copy()

    try:
        n_kernels, n_replaced = fuse(fgraph, reason)
    except BaseException as error:
        if not _is_failure(error):
            raise
        raise FusionError(_request_for_report(fgraph, error)) from error

    if not profile:
        return n_kernels, n_replaced, 0, None, None, {}, -1
    validate_time = profile.validate_time - validate_before
    callback_time = fgraph.execute_callbacks_time - callback_before
    callbacks_time = {
        feature: seconds - callbacks_before.get(feature, 0)
        for feature, seconds in fgraph.execute_callbacks_times.items()
    }
    return n_kernels, n_replaced, 0, validate_time, callback_time, callbacks_time, -1


def _is_failure(error: BaseException) -> bool:
    # A panic in Rust is not an Exception, so that Python code does not swallow it by accident; it
    # would end the compile.
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _request_for_report(fgraph: FunctionGraph, error: BaseException) -> str:
    import pytensor

    return (
        f"pytensor_fuse could not fuse a graph of {len(fgraph.apply_nodes)} nodes, "
        f"{len(fgraph.inputs)} inputs and {len(fgraph.outputs)} outputs "
        f"({type(error).__name__}: {error}). The graph is as it was, its Elemwise nodes unfused. "
        f"Please report this, with a program that shows it, at {ISSUES} "
        f"(pytensor_fuse {__version__}, PyTensor {pytensor.__version__}). "
        "Until then, PYTENSOR_FUSE=0 or pytensor_fuse.disable() uses PyTensor's own fusion."
    )
