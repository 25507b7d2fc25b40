"""The passes over joins, which are added to PyTensor's databases.

`join_buffer_elimination` does the work; its implementation, most of the package, is loaded when a
graph with joins is first rewritten. The other passes run before it and give it, through one
context, information about the graph. None replaces a pass of PyTensor's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary, WeakSet

from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.tensor.basic import Join, MakeVector
from pytensor.tensor.subtensor import IncSubtensor

from pytensor_fuse._activation.withdrawal import load
from pytensor_fuse._joins.notes import note_reports
from pytensor_fuse._pytensor.patching.patches import SwitchedClass
from pytensor_fuse._pytensor.rewriting.databases import Entry, ListedRewriters
from pytensor_fuse._startup.features import on_now

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._joins.thresholds import Thresholds


class JoinContext:
    """Information that the passes over joins share about a graph that is being compiled.

    Attributes
    ----------
    thresholds
        The limits for `join_buffer_elimination`; None for those in benchmarks/README.md.
    """

    def __init__(self, thresholds: Thresholds | None = None) -> None:
        self.thresholds = thresholds
        self._targets: WeakKeyDictionary[FunctionGraph, str] = WeakKeyDictionary()
        self._reusing: WeakSet[FunctionGraph] = WeakSet()

    def note_target(self, fgraph: FunctionGraph, target: str) -> None:
        """Record the name of the target that ``fgraph`` is being compiled for."""
        self._targets[fgraph] = target

    def take_target(self, fgraph: FunctionGraph) -> str:
        """Return the recorded name, and forget it; Python's if there is none."""
        return self._targets.pop(fgraph, "python")

    def note_reuse(self, fgraph: FunctionGraph) -> None:
        """Record that joins of ``fgraph`` may keep their memory from call to call."""
        self._reusing.add(fgraph)

    def take_reuse(self, fgraph: FunctionGraph) -> bool:
        """Return whether this was recorded, and forget it."""
        reuse = fgraph in self._reusing
        self._reusing.discard(fgraph)
        return reuse

    def __reduce__(self) -> tuple[type[JoinContext], tuple[Thresholds | None]]:
        # A copy, also in another process, is for other graphs.
        return JoinContext, (self.thresholds,)


class JoinPass(GraphRewriter):
    """A pass that shares a context with the others."""

    def __init__(self, context: JoinContext) -> None:
        self.context = context

    @property
    def decides_by(self) -> Thresholds | None:
        """The parameters that affect the rewritten graph, for cache keys."""
        return self.context.thresholds


class TargetKnown(JoinPass):
    """Records the target that a graph is being compiled for, for later passes.

    PyTensor 3.0 does not tell passes the target. But its linkers query the databases with different
    tags, so a pass with the right tags runs for one target only.
    """

    def __init__(self, context: JoinContext, target: str) -> None:
        super().__init__(context)
        self.target = target

    def apply(self, fgraph: FunctionGraph) -> None:
        """Record the target."""
        self.context.note_target(fgraph, self.target)


class ReuseAsked(JoinPass):
    """Records that the memory of joins may be kept from call to call, if C code allocates it."""

    def apply(self, fgraph: FunctionGraph) -> None:
        """Record it."""
        self.context.note_reuse(fgraph)


class JoinsKept(JoinPass):
    """The class of the registered pass while the feature is off: it changes no graph."""

    def apply(self, fgraph: FunctionGraph) -> None:
        """Do nothing."""


class JoinBufferElimination(JoinsKept):
    """Replaces joins whose streams kernels can write by `WriteSplit` and `WriteJoin`."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach PyTensor's destroy handler, unless ``fgraph`` has one."""
        if not hasattr(fgraph, "destroy_handler"):
            fgraph.attach_feature(DestroyHandler())

    def apply(self, fgraph: FunctionGraph) -> None:
        """Eliminate the joins of ``fgraph`` that are worth it, if the modules can be loaded."""
        noted, reuse = self.context.take_target(fgraph), self.context.take_reuse(fgraph)
        if not _has_work(fgraph):
            note_reports(fgraph, ())
            return
        elimination = load("joins", "pytensor_fuse._joins.eliminate")
        if elimination is None:
            return
        target = elimination.compile_target(fgraph, noted)
        # Our machine code supports the ops. If Numba compiles a graph after all, its
        # implementations are registered when its dispatch is imported.
        needs_numba = elimination.needs_numba(fgraph, target) and "native" not in on_now()
        if needs_numba and load("joins", "pytensor_fuse._joins.ops.numba") is None:
            return
        elimination.eliminate_joins(fgraph, target, reuse=reuse, thresholds=self.context.thresholds)


def _has_work(fgraph: FunctionGraph) -> bool:
    """Whether a graph has ops that the pass eliminates, reports on, or has made before."""
    return any(
        isinstance(node.op, Join | IncSubtensor | MakeVector)
        or type(node.op).__name__ == "WriteElemwise"
        for node in fgraph.apply_nodes
    )


_NAME: Final = "join_buffer_elimination"
# After the destroy handler is attached, before any op is made to work in place.
_POSITION: Final = 49.7

# One for the process: stored query results hold it, and follow a change of its class.
join_context: Final = JoinContext()
_joins = JoinsKept(join_context)
_joins.name = _NAME
_in_c = TargetKnown(join_context, "c")
_in_c.name = f"{_NAME}_in_c"
_in_numba = TargetKnown(join_context, "numba")
_in_numba.name = f"{_NAME}_in_numba"
_reuse = ReuseAsked(join_context)
_reuse.name = "join_buffer_reuse"


def listed_passes() -> ListedRewriters:
    """Return the patch that registers the pass, and those that record the target of a graph."""
    return ListedRewriters(
        [
            # Linkers without C exclude the tag `cxx_only`, and Numba's includes its own.
            Entry(_in_c, _POSITION - 0.02, (TargetKnown.__name__, "fast_run", "cxx_only")),
            Entry(_in_numba, _POSITION - 0.01, (TargetKnown.__name__, "numba")),
            # Only a mode that includes its name runs it.
            Entry(_reuse, _POSITION - 0.03, (ReuseAsked.__name__,)),
            Entry(_joins, _POSITION, (JoinBufferElimination.__name__, "fast_run", "inplace")),
        ]
    )


def switched_pass() -> SwitchedClass:
    """Return the patch that switches the pass in stored query results, too."""
    return SwitchedClass(lambda: [_joins], {JoinsKept: JoinBufferElimination})
