"""The pass `join_buffer_elimination` as it is registered, which PyTensor does not have.

Its class, and what has to be told to it, are in `_joins.rewriter`: it takes the place of nothing of
PyTensor's. Here is what loads and lists it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor_fuse._activation.withdrawal import load
from pytensor_fuse._joins.context import JoinContext
from pytensor_fuse._joins.rewriter import JoinBufferElimination, JoinsKept, ReuseAsked, TargetKnown
from pytensor_fuse._pytensor.databases import Entry, ListedRewriters
from pytensor_fuse._pytensor.patches import SwitchedClass
from pytensor_fuse._pytensor.targets import Target

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph


class LoadedJoinBufferElimination(JoinBufferElimination):
    """The pass, which loads what it does when it first runs."""

    def eliminate(self, fgraph: FunctionGraph, target: Target, *, reuse: bool) -> None:
        """Eliminate joins, unless what that needs cannot be loaded."""
        elimination = load("joins", "pytensor_fuse._joins.eliminate")
        if elimination is None:
            return
        # Where there is nothing to eliminate, Numba is not loaded for it.
        needs_numba = target is Target.NUMBA and elimination.has_joins(fgraph)
        if not needs_numba or load("joins", "pytensor_fuse._joins.ops.numba") is not None:
            super().eliminate(fgraph, target, reuse=reuse)


# Profiles and summaries print it.
LoadedJoinBufferElimination.__name__ = JoinBufferElimination.__name__

_NAME: Final = "join_buffer_elimination"
# After the destroy handler is attached, before any op is made to work in place.
_POSITION: Final = 49.7

# One for the process: what keeps it from a query while it was on finds its class changed.
join_context: Final = JoinContext()
_joins = JoinsKept(join_context)
_joins.name = _NAME
_in_c = TargetKnown(join_context, Target.C)
_in_c.name = f"{_NAME}_in_c"
_in_numba = TargetKnown(join_context, Target.NUMBA)
_in_numba.name = f"{_NAME}_in_numba"
_reuse = ReuseAsked(join_context)
_reuse.name = "join_buffer_reuse"


def listed_passes() -> ListedRewriters:
    """Return the patch that registers the pass, and what tells it of the target of a graph."""
    return ListedRewriters(
        [
            # Linkers that do not run C exclude the tag that says so, and Numba's asks for its own.
            Entry(_in_c, _POSITION - 0.02, (TargetKnown.__name__, "fast_run", "cxx_only")),
            Entry(_in_numba, _POSITION - 0.01, (TargetKnown.__name__, "numba")),
            # Nothing asks for it but a mode that includes its name.
            Entry(_reuse, _POSITION - 0.03, (ReuseAsked.__name__,)),
            Entry(_joins, _POSITION, (JoinBufferElimination.__name__, "fast_run", "inplace")),
        ]
    )


def switched_pass() -> SwitchedClass:
    """Return the patch by which those follow who got the pass from a query."""
    return SwitchedClass(lambda: [_joins], {JoinsKept: LoadedJoinBufferElimination})
