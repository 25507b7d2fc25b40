"""Ops that call SciPy's optimizers: loops around a compiled function of the inner graph."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pytensor.tensor.optimize import ScipyWrapperOp

from pytensor_fuse._pytensor.patching.patches import ReplacedAttributes

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.compile.mode import Mode
    from pytensor.graph.op import Op

_stock: Final[Any] = vars(ScipyWrapperOp)["fn_wrapped"]
# Before PyTensor 3.3, inner functions are compiled in the default mode.
_LINKS: Final = hasattr(ScipyWrapperOp, "compile_fn")


def is_optimizer(op: Op) -> bool:
    """Whether an op calls one of SciPy's optimizers.

    Parameters
    ----------
    op
        The op.
    """
    return isinstance(op, ScipyWrapperOp)


def link_inner_function(op: ScipyWrapperOp) -> None:
    """Link the inner function of an optimizer, unless it is linked.

    Parameters
    ----------
    op
        The op.
    """
    op.fn_wrapped  # noqa: B018 # a property that keeps the function


def inner_functions(mode: Callable[[], Mode | None], failure: type[Exception]) -> Any:
    """Return the patch that links the inner functions of optimizers in another mode.

    It affects functions that nothing has linked before they run. Numba's linker leaves them so,
    because it runs the op in Python. PyTensor would link a virtual machine, and each of its nodes
    in C.

    Parameters
    ----------
    mode
        Returns the mode to link in, or None for PyTensor's own.
    failure
        An exception in linking after which PyTensor's own mode is used.
    """

    def fn_wrapped(self: Any) -> Any:
        if self._fn is None and _LINKS and (own := mode()) is not None:
            with suppress(failure):
                self._fn = self.compile_fn(own)
        return _stock.fget(self)

    return ReplacedAttributes([ScipyWrapperOp], "fn_wrapped", property(fn_wrapped))
