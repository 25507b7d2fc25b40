"""Names of node rewriters, without the text that says what they would be called without a name.

A rewriter made from a function writes out the function and its tracks each time it is asked for its
name, as the default of a ``getattr``; each node that comes and each that goes notes the name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.rewriting.basic import FromFunctionGraphRewriter, FromFunctionNodeRewriter

from pytensor_fuse._pytensor.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch

_NONE = object()


def _str(self: Any) -> Any:
    name = getattr(self, "__name__", _NONE)
    return repr(self) if name is _NONE else name


def patch() -> Patch:
    """Return the patch."""
    return Together(
        [
            DropIn(FromFunctionNodeRewriter, "__str__", _str),
            DropIn(FromFunctionGraphRewriter, "__str__", _str),
        ]
    )
