"""The feature of a graph that notes what merging has to look up.

A drop-in for PyTensor's `MergeFeature`. That one looks for the equals of a node among the clients
of its inputs, at each import and each change of an input. This one only notes which nodes came or
changed; the pass looks up those that are still there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.features import AlreadyThere
from pytensor.graph.rewriting.basic import MergeFeature

from pytensor_fuse._merging.merger import Merger
from pytensor_fuse._merging.stock_view import ConstantsBySignature, Schedule
from pytensor_fuse._pytensor.features import mind_no_steps, told_of

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._merging.merger import Tally

    Node = Apply[Any]
    Var = Variable[Any, Any]


# Whether a node that was pruned is there is asked when it matters.
@mind_no_steps
@told_of("on_attach", "on_detach", "on_import", "on_change_input")
class LazyMergeFeature(MergeFeature):
    """Notes what merging has to look up, for a `Merger`.

    PyTensor's own pass can work with it: see `stock_view`. What else `MergeFeature` keeps in
    attributes nobody reads, and is not there.

    Attributes
    ----------
    merger
        Merges what was noted.
    scheduled, blacklist
        What PyTensor's pass is to merge, and what it could not.
    atomic_sig_inv
        Finds constants by their signatures.
    """

    merger: Merger
    scheduled: Schedule  # type: ignore[assignment]
    blacklist: list[tuple[Node, Node]]
    atomic_sig_inv: ConstantsBySignature  # type: ignore[assignment]

    def on_attach(self, fgraph: FunctionGraph) -> None:
        """Note all nodes of ``fgraph``.

        Raises
        ------
        AlreadyThere
            If ``fgraph`` has a feature for merging.
        """
        if hasattr(fgraph, "merge_feature"):
            raise AlreadyThere
        fgraph.merge_feature = self  # type: ignore[attr-defined]
        self.begin(fgraph)

    def begin(self, fgraph: FunctionGraph) -> None:
        """Note all nodes of ``fgraph``, and forget what was known."""
        self._fgraph = fgraph
        self.merger = Merger(fgraph, self)
        self.scheduled = Schedule(self.merger)
        self.blacklist = []
        self.atomic_sig_inv = ConstantsBySignature(self.merger)

    def merge(self) -> Tally:
        """Merge as `Merger.merge` does."""
        self.scheduled.return_unmerged()
        return self.merger.merge()

    # Callbacks ----------------------------------------------------------------------------

    def on_import(self, fgraph: FunctionGraph, node: Node, reason: object) -> None:
        """Note ``node``."""
        self.merger.pending[node] = None

    def on_change_input(
        self, fgraph: FunctionGraph, node: Node, i: int, r: Var, new_r: Var, reason: object = None
    ) -> None:
        """Note ``node``."""
        self.merger.pending[node] = None

    def on_prune(self, fgraph: FunctionGraph, node: Node, reason: object) -> None:
        """Do nothing."""

    # Copies -------------------------------------------------------------------------------

    def clone(self) -> LazyMergeFeature:
        """Make one for another graph."""
        return type(self)()

    def __getstate__(self) -> dict[str, Any]:
        return {"_fgraph": self._fgraph} if "_fgraph" in vars(self) else {}

    def __getattr__(self, name: str) -> Any:
        # The table hashes variables and ops. It is made anew when it is first used, for while an
        # object is unpickled its parts may be incomplete.
        state = vars(self)
        if name.startswith("__") or "_fgraph" not in state or "merger" in state:
            raise AttributeError(name)
        self.begin(self._fgraph)
        return getattr(self, name)
