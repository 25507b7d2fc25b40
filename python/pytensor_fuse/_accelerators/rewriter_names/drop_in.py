"""Names of node rewriters: the default name is formatted only for rewriters without a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.rewriting.basic import FromFunctionGraphRewriter, FromFunctionNodeRewriter

from pytensor_fuse._pytensor.patching.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch

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
