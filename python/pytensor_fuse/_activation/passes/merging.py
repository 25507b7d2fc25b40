"""PyTensor's merging passes, done by this package."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, SupportsIndex

from pytensor.graph.rewriting.basic import MergeOptimizer

from pytensor_fuse._activation.withdrawal import load
from pytensor_fuse._pytensor.databases import registered_rewriters
from pytensor_fuse._pytensor.profiles import Clock

if TYPE_CHECKING:
    from types import ModuleType

    from pytensor.graph.fg import FunctionGraph


class MergeRewriter(MergeOptimizer):
    """PyTensor's merging pass, done by this package; without state of its own, as PyTensor's."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach this package's feature for merging to ``fgraph``, unless it has one for that."""
        merging = _merging()
        if merging is None:
            # Its class may have been given back.
            MergeOptimizer.add_requirements(self, fgraph)
        elif not hasattr(fgraph, "merge_feature"):
            fgraph.attach_feature(merging.LazyMergeFeature())

    def apply(self, fgraph: FunctionGraph) -> tuple[Any, ...]:
        """Merge the equal nodes and constants of ``fgraph``, and return the profile of that.

        Returns
        -------
        tuple
            What PyTensor's own pass returns: the merges that were refused, the seconds that merging
            took, the seconds of that spent validating and in the callbacks of features, in all and
            each, if the graph is profiled, the variables replaced, and the constants among them.

        Raises
        ------
        Exception
            Whatever a feature of ``fgraph`` raises, as it is: the fault is not in the pass. Nothing
            is then half merged.
        """
        start = time.perf_counter()
        merging = _merging()
        feature = None if merging is None else merging.adopt(fgraph)
        if merging is None or feature is None:
            # A feature for merging that someone else has written serves PyTensor's own pass.
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


# Under this name PyTensor's databases keep it, and profiles and summaries print it.
MergeRewriter.__name__ = MergeOptimizer.__name__


def find_merging_passes() -> list[MergeOptimizer]:
    """Return the registered merging passes that are PyTensor's own or ours.

    There are several, most of them under names that say little, wherever in the databases they are.
    A pass of another class is left alone.
    """
    return [
        rewriter
        for rewriter in registered_rewriters()
        if type(rewriter) is MergeOptimizer or type(rewriter) is MergeRewriter
    ]


def merging_pass(name: str, number: int) -> MergeOptimizer:
    """Return the registered merging pass with this name; a new one if there is none.

    Names are unique within a database only: ``number`` says which of them it is.
    """
    found = _named(name)
    return found[number] if number < len(found) else MergeOptimizer()


def _named(name: str | None) -> list[MergeOptimizer]:
    return [found for found in find_merging_passes() if found.name == name]


def _merging() -> ModuleType | None:
    return load("merging", "pytensor_fuse._merging.merge")
