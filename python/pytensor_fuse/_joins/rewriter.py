"""The pass `join_buffer_elimination` as PyTensor's databases hold it, and what it has to be told.

What the pass does is in `_joins.eliminate`, which is loaded when a graph is first rewritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.rewriting.basic import GraphRewriter

from pytensor_fuse._pytensor.targets import Target, resolve_target

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._joins.context import JoinContext


class JoinPass(GraphRewriter):
    """A pass that shares a context with the others."""

    def __init__(self, context: JoinContext) -> None:
        self.context = context


class TargetKnown(JoinPass):
    """Says which target a graph is being compiled for, to the passes that come after it.

    PyTensor 3.0 does not say; but what its linkers ask the databases for differs, so a pass that
    is listed under the right tags runs for one target alone.
    """

    def __init__(self, context: JoinContext, target: Target) -> None:
        super().__init__(context)
        self.target = target

    def apply(self, fgraph: FunctionGraph) -> None:
        """Note the target."""
        self.context.note_target(fgraph, self.target)


class ReuseAsked(JoinPass):
    """Says that the memory of joins may be kept from call to call, where C code makes it."""

    def apply(self, fgraph: FunctionGraph) -> None:
        """Note that."""
        self.context.note_reuse(fgraph)


class JoinsKept(JoinPass):
    """What is registered while the package is off: it leaves every graph alone."""

    def apply(self, fgraph: FunctionGraph) -> None:
        """Do nothing."""


class JoinBufferElimination(JoinsKept):
    """Replaces joins whose streams kernels can write by `WriteSplit` and `WriteJoin`."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach PyTensor's destroy handler, unless ``fgraph`` has one."""
        if not hasattr(fgraph, "destroy_handler"):
            fgraph.attach_feature(DestroyHandler())

    def apply(self, fgraph: FunctionGraph) -> None:
        """Eliminate the joins of ``fgraph`` that are worth it."""
        target = resolve_target(None, fgraph)
        if target is Target.STRICT:
            target = self.context.take_target(fgraph)
        self.eliminate(fgraph, target, reuse=self.context.take_reuse(fgraph))

    def eliminate(self, fgraph: FunctionGraph, target: Target, *, reuse: bool) -> None:
        """Do so for a target."""
        # A program that compiles nothing does not pay for loading it.
        from pytensor_fuse._joins.eliminate import eliminate_joins

        eliminate_joins(fgraph, target, reuse=reuse, thresholds=self.context.thresholds)
