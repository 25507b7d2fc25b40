"""What PyTensor's rewriting sees of a run of the pass: its profile, and its failure.

PyTensor is not imported here at import time: see `pytensor_fuse._activation.startup`.
"""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, Any

from pytensor_fuse._core import __version__
from pytensor_fuse._errors import FusionError

if TYPE_CHECKING:
    from types import ModuleType

    from pytensor.graph.fg import FunctionGraph

ISSUES = "https://github.com/pytensor-fuse/pytensor-fuse/issues"


def fuse(fgraph: FunctionGraph, reason: str) -> tuple[int, int]:
    """Run the pass on ``fgraph``; see `pytensor_fuse._fusion.fuse.fuse`."""
    # A program that compiles nothing does not pay for loading the planner.
    from pytensor_fuse._fusion.fuse import fuse as run

    return run(fgraph, reason)


def fuse_profiled(fgraph: FunctionGraph, reason: str) -> tuple[Any, ...]:
    """Run the pass on ``fgraph`` for PyTensor's rewriters.

    Where the mode merges equal nodes, those are merged first, so that no two kernels compute the
    same thing: a comparison of whole kernels would no longer show it.

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
        If the pass failed. ``fgraph`` is then as it was, but merged. PyTensor logs the error and
        compiles on, or raises it, as its option ``on_opt_error`` says.
    Exception
        What a feature of ``fgraph`` raises while equal nodes are merged.
    """
    clock = _Clock(fgraph)
    _merge().merge_if_attached(fgraph)
    try:
        n_kernels, n_replaced = fuse(fgraph, reason)
    except BaseException as error:
        if not _is_failure(error):
            raise
        raise FusionError(_request_for_report(fgraph, error)) from error

    return n_kernels, n_replaced, 0, *clock.times(), -1


def attach_merging(fgraph: FunctionGraph) -> None:
    """Attach our feature for merging to ``fgraph``, unless it has one."""
    if not hasattr(fgraph, "merge_feature"):
        fgraph.attach_feature(_merge().LazyMergeFeature())


def merge_profiled(fgraph: FunctionGraph) -> tuple[Any, ...] | None:
    """Run the merging pass on ``fgraph`` for PyTensor's rewriters.

    Returns
    -------
    tuple or None
        What PyTensor's own pass returns: the merges that were refused, the seconds that merging
        took, the seconds of that spent validating and in the callbacks of features, in all and
        each, if the graph is profiled, the variables replaced, and the constants among them. None
        if the graph has a feature for merging that is neither PyTensor's nor ours.

    Raises
    ------
    Exception
        Whatever a feature raises, as it is: the fault is not in the pass.
    """
    start = time.perf_counter()
    merging = _merge()
    feature = merging.adopt(fgraph)
    if feature is None:
        return None
    clock = _Clock(fgraph)
    done = merging.merge(fgraph, feature)
    times = clock.times()
    seconds = time.perf_counter() - start
    return done.n_refused, seconds, *times, done.n_merged, done.n_constants


@cache
def _merge() -> ModuleType:
    from pytensor_fuse._merging import feature

    return feature


class _Clock:
    """What PyTensor's profiling of a graph adds up, from when this is made."""

    def __init__(self, fgraph: FunctionGraph) -> None:
        self._fgraph = fgraph
        if fgraph.profile:
            self._validate = fgraph.profile.validate_time
            self._callback = fgraph.execute_callbacks_time
            self._callbacks = fgraph.execute_callbacks_times.copy()

    def times(self) -> tuple[float | None, float | None, dict[Any, float]]:
        """Return seconds spent validating and in callbacks, in all and by feature, if known."""
        fgraph = self._fgraph
        if not fgraph.profile:
            return None, None, {}
        callbacks = {
            feature: seconds - self._callbacks.get(feature, 0)
            for feature, seconds in fgraph.execute_callbacks_times.items()
        }
        validate = fgraph.profile.validate_time - self._validate
        return validate, fgraph.execute_callbacks_time - self._callback, callbacks


def _is_failure(error: BaseException) -> bool:
    # A panic in Rust is not an Exception, so that Python code does not swallow it by accident; it
    # would end the compile.
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _request_for_report(fgraph: FunctionGraph, error: BaseException) -> str:
    import pytensor

    return (
        f"pytensor_fuse could not fuse a graph of {len(fgraph.apply_nodes)} nodes, "
        f"{len(fgraph.inputs)} inputs and {len(fgraph.outputs)} outputs "
        f"({type(error).__name__}: {error}). Its Elemwise nodes are as they were, unfused. "
        f"Please report this, with a program that shows it, at {ISSUES} "
        f"(pytensor_fuse {__version__}, PyTensor {pytensor.__version__}). "
        "Until then, PYTENSOR_FUSE=0 or pytensor_fuse.disable() uses PyTensor's own fusion."
    )
