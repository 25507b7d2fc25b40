"""The graphs whose linkers support the ops of the package, seen by tags of passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from pytensor.graph.rewriting.basic import GraphRewriter

from pytensor_fuse._activation.withdrawal import load
from pytensor_fuse._startup.features import on_now

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph


class KnownOps:
    """The graphs whose linkers support the ops of this package, with the tag that shows it.

    PyTensor 3.0 does not tell passes the linker, but linkers exclude passes by their tags.
    Those of JAX, PyTorch and MLX exclude all the tags below, and no other does; Numba's excludes
    some and includes one of its own. So the ops are supported if a pass with one of these tags has
    run.
    """

    TAGS: Final = {
        "in_place": ("fast_run", "inplace"),
        "in_c": ("fast_run", "cxx_only"),
        "with_blas": ("fast_run", "BlasOpt"),
        "in_numba": ("numba",),
    }

    def __init__(self) -> None:
        self._noted: WeakKeyDictionary[FunctionGraph, str] = WeakKeyDictionary()

    def note(self, fgraph: FunctionGraph, by: str | None) -> None:
        """Record the tag that shows support of the ops; None if they are not supported."""
        if by is None:
            self._noted.pop(fgraph, None)
        else:
            self._noted[fgraph] = by

    def may_be_made(self, fgraph: FunctionGraph) -> bool:
        """Whether a rule may add the ops to a graph; Numba needs their implementations."""
        by = self._noted.get(fgraph)
        # Our machine code supports the ops, as in `passes.joins`.
        if by == "in_numba" and "native" not in on_now():
            return load("linalg", "pytensor_fuse._linalg.ops.numba") is not None
        return by is not None


known_ops: Final = KnownOps()


class OpsKnown(GraphRewriter):
    """Records the tag that shows that a graph's linker supports the ops of this package."""

    def __init__(self, by: str | None) -> None:
        self.name = "linalg_ops" if by is None else f"linalg_ops_{by}"
        self.by = by

    def apply(self, fgraph: FunctionGraph) -> None:
        """Record it."""
        known_ops.note(fgraph, self.by)
