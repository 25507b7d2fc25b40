"""The merging pass: this package's replacement of PyTensor's."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, SupportsIndex

from pytensor.graph.rewriting.basic import MergeOptimizer

from pytensor_fuse._activation.withdrawal import load
from pytensor_fuse._pytensor.patching.patches import SwitchedClass
from pytensor_fuse._pytensor.rewriting.databases import registered_rewriters
from pytensor_fuse._pytensor.rewriting.profiles import Clock

if TYPE_CHECKING:
    from types import ModuleType

    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._pytensor.patching.patches import Patch


class MergeRewriter(MergeOptimizer):
    """The replacement of PyTensor's merging pass; it has no state of its own."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach this package's feature for merging to ``fgraph``, unless it has one already."""
        merging = _merging()
        if merging is None:
            # Its class may have been restored.
            MergeOptimizer.add_requirements(self, fgraph)
        elif not hasattr(fgraph, "merge_feature"):
            fgraph.attach_feature(merging.LazyMergeFeature())

    def apply(self, fgraph: FunctionGraph) -> tuple[Any, ...]:
        """Merge the equal nodes and constants of ``fgraph``, and return the profile of the pass.

        Returns
        -------
        tuple
            The same as for PyTensor's own pass: the refused merges, the seconds of the whole pass,
            of validation and of the callbacks of features, in all and
            each, if the graph is profiled, the variables replaced, and the constants among them.

        Raises
        ------
        Exception
            Any exception of a feature of ``fgraph``, unchanged, since the fault is not in the pass.
            The graph is then consistent.
        """
        start = time.perf_counter()
        merging = _merging()
        feature = None if merging is None else merging.adopt(fgraph)
        if merging is None or feature is None:
            # A third-party feature for merging works with PyTensor's own pass.
            return MergeOptimizer.apply(self, fgraph)  # type: ignore[no-any-return]
        clock = Clock(fgraph)
        done = merging.merge(fgraph, feature)
        times = clock.times()
        seconds = time.perf_counter() - start
        return done.n_refused, seconds, *times, done.n_merged, done.n_constants

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        name = getattr(self, "name", None)
        named = _named(name)
        if any(self is found for found in named):
            return merging_pass, (name, named.index(self))
        return super().__reduce_ex__(protocol)


# PyTensor's databases store it under this name, and profiles and summaries print it.
MergeRewriter.__name__ = MergeOptimizer.__name__


def find_merging_passes() -> list[MergeOptimizer]:
    """Return the registered merging passes that are PyTensor's own or ours.

    There are several in different databases, most of them under uninformative names.
    A pass of another class is not included.
    """
    return [
        rewriter
        for rewriter in registered_rewriters()
        if type(rewriter) is MergeOptimizer or type(rewriter) is MergeRewriter
    ]


def switched_passes() -> Patch:
    """Return the patch that switches the class of the registered merging passes."""
    return SwitchedClass(find_merging_passes, {MergeOptimizer: MergeRewriter})


def merging_pass(name: str, number: int) -> MergeOptimizer:
    """Return the registered merging pass with this name; a new one if there is none.

    Names are unique within a database only: ``number`` selects one of them.
    """
    found = _named(name)
    return found[number] if number < len(found) else MergeOptimizer()


def _named(name: str | None) -> list[MergeOptimizer]:
    return [found for found in find_merging_passes() if found.name == name]


def _merging() -> ModuleType | None:
    return load("merging", "pytensor_fuse._merging.merge")
