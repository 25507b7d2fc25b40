"""The fusion pass: this package's replacement of PyTensor's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

import pytensor
from pytensor.tensor.rewriting.elemwise import FusionOptimizer

from pytensor_fuse._activation.withdrawal import load
from pytensor_fuse._core import __version__
from pytensor_fuse._errors import FusionError, RegistrationError
from pytensor_fuse._pytensor.patching.patches import SwitchedClass
from pytensor_fuse._pytensor.rewriting.databases import (
    FUSION_ENTRY,
    FUSION_SEQUENCE,
    registered_fusion,
)
from pytensor_fuse._pytensor.rewriting.profiles import Clock

if TYPE_CHECKING:
    from types import ModuleType

    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._pytensor.patching.patches import Patch

ISSUES = "https://github.com/pytensor-fuse/pytensor-fuse/issues"


class FusionRewriter(FusionOptimizer):
    """The replacement of PyTensor's fusion pass.

    It overrides `apply` of its base class, and has no state of its own: an instance of
    one class can become an instance of the other.
    """

    def apply(self, fgraph: FunctionGraph) -> tuple[Any, ...]:
        """Fuse the Elemwise nodes of ``fgraph``, and return the profile of the pass.

        If the mode merges equal nodes, they are merged first, so that no two kernels compute
        the same value: a comparison of whole kernels would no longer find it.

        Returns
        -------
        tuple
            The same as for PyTensor's own pass: the rewriter itself, the kernels made, the nodes
            replaced, the replacements that were inconsistent (none), the seconds spent validating
            and in the callbacks of features, in all and each, if the graph is profiled, and the
            seconds spent sorting (unknown).

        Raises
        ------
        FusionError
            If the pass failed. ``fgraph`` is then merged, but otherwise unchanged. PyTensor logs
            the error and continues, or raises it, according to its option ``on_opt_error``.
        Exception
            Any exception of a feature of ``fgraph`` while equal nodes are merged.
        """
        fusion = load("fusion", "pytensor_fuse._fusion.fuse")
        if fusion is None:
            # Its class has been restored.
            return FusionOptimizer.apply(self, fgraph)  # type: ignore[no-any-return]
        clock = Clock(fgraph)
        merging = load("merging", "pytensor_fuse._merging.merge")
        if merging is not None:
            merging.merge_if_attached(fgraph)
        try:
            n_kernels, n_replaced = fuse(fusion, fgraph, type(self).__name__)
        except BaseException as error:
            if not _is_failure(error):
                raise
            raise FusionError(_request_for_report(fgraph, error)) from error
        return self, n_kernels, n_replaced, 0, *clock.times(), -1

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        # A copy of the registered pass, in this process or another, is the pass registered there:
        # it follows `enable` and `disable`.
        if self is registered_fusion():
            return registered_fusion, ()
        return super().__reduce_ex__(protocol)


# PyTensor's databases store a rewriter under the name of its class, and look it up there when it is
# replaced; profiles and summaries print it.
FusionRewriter.__name__ = FusionOptimizer.__name__


def fuse(fusion: ModuleType, fgraph: FunctionGraph, reason: str) -> tuple[int, int]:
    """Run the pass on ``fgraph``; see `pytensor_fuse._fusion.fuse`."""
    done: tuple[int, int] = fusion.fuse(fgraph, reason)
    return done


def find_fusion() -> list[object]:
    """Return the registered fusion pass.

    Raises
    ------
    RegistrationError
        If it is not PyTensor's own, because another package has replaced or removed it.
    """
    rewriter = registered_fusion()
    if rewriter is None:
        raise RegistrationError(
            f"PyTensor has no fusion pass {FUSION_ENTRY!r} in its sequence {FUSION_SEQUENCE!r}, so "
            "there is nothing that pytensor_fuse could take the place of; find what removed it"
        )
    kind = type(rewriter)
    if kind is not FusionOptimizer and kind is not FusionRewriter:
        raise RegistrationError(
            f"PyTensor's fusion pass {FUSION_ENTRY!r} is a {kind.__module__}.{kind.__qualname__}, "
            "not its own: another package has replaced it. pytensor_fuse leaves it alone; to use "
            "pytensor_fuse, do without that package"
        )
    return [rewriter]


def switched_pass() -> Patch:
    """Return the patch that switches the class of the registered fusion pass."""
    return SwitchedClass(find_fusion, {FusionOptimizer: FusionRewriter})


def _is_failure(error: BaseException) -> bool:
    # A panic in Rust is not an Exception, so that Python code does not swallow it by accident; it
    # would abort the compile.
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _request_for_report(fgraph: FunctionGraph, error: BaseException) -> str:
    return (
        f"pytensor_fuse could not fuse a graph of {len(fgraph.apply_nodes)} nodes, "
        f"{len(fgraph.inputs)} inputs and {len(fgraph.outputs)} outputs "
        f"({type(error).__name__}: {error}). Its Elemwise nodes are as they were, unfused. "
        f"Please report this, with a program that shows it, at {ISSUES} "
        f"(pytensor_fuse {__version__}, PyTensor {pytensor.__version__}). "
        "Until then, PYTENSOR_FUSE=0 or pytensor_fuse.disable() uses PyTensor's own fusion."
    )
