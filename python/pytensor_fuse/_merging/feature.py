"""Graph feature that records new and changed nodes for merging.

A drop-in for PyTensor's `MergeFeature`, which searches the clients of a node's inputs for equal
nodes, at each import and each change of an input. This feature only records the nodes; the pass
looks up those that are still there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.features import AlreadyThere
from pytensor.graph.rewriting.basic import MergeFeature

from pytensor_fuse._merging.merger import Merger
from pytensor_fuse._merging.stock_view import ConstantsBySignature, Schedule
from pytensor_fuse._pytensor.graphs.features import mind_no_steps, told_of

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._merging.merger import Tally

    Node = Apply[Any]
    Var = Variable[Any, Any]


# `on_prune` is not needed: the pass checks whether a node is still there.
@mind_no_steps
@told_of("on_attach", "on_detach", "on_import", "on_change_input")
class LazyMergeFeature(MergeFeature):
    """Records new and changed nodes for a `Merger`.

    PyTensor's own pass can work with it: see `stock_view`. The other attributes of `MergeFeature`
    have no readers and are missing.

    Attributes
    ----------
    merger
        Merges the recorded nodes.
    scheduled, blacklist
        The merges for PyTensor's pass, and those that it could not make.
    atomic_sig_inv
        Finds constants by their signatures.
    """

    merger: Merger
    scheduled: Schedule  # type: ignore[assignment]
    blacklist: list[tuple[Node, Node]]
    atomic_sig_inv: ConstantsBySignature  # type: ignore[assignment]

    def on_attach(self, fgraph: FunctionGraph) -> None:
        """Record all nodes of ``fgraph``.

        Raises
        ------
        AlreadyThere
            If ``fgraph`` already has a feature for merging.
        """
        if hasattr(fgraph, "merge_feature"):
            raise AlreadyThere
        fgraph.merge_feature = self  # type: ignore[attr-defined]
        self.begin(fgraph)

    def begin(self, fgraph: FunctionGraph) -> None:
        """Record all nodes of ``fgraph``, and drop the state of earlier passes."""
        self._fgraph = fgraph
        self.merger = Merger(fgraph, self)
        self.scheduled = Schedule(self.merger)
        self.blacklist = []
        self.atomic_sig_inv = ConstantsBySignature(self.merger)

    def merge(self) -> Tally:
        """Merge the recorded nodes; see `Merger.merge`."""
        self.scheduled.return_unmerged()
        return self.merger.merge()

    # Callbacks ----------------------------------------------------------------------------

    def on_import(self, fgraph: FunctionGraph, node: Node, reason: object) -> None:
        """Record ``node``."""
        self.merger.pending[node] = None

    def on_change_input(
        self, fgraph: FunctionGraph, node: Node, i: int, r: Var, new_r: Var, reason: object = None
    ) -> None:
        """Record ``node``."""
        self.merger.pending[node] = None

    def on_prune(self, fgraph: FunctionGraph, node: Node, reason: object) -> None:
        """Do nothing."""

    # Copies -------------------------------------------------------------------------------

    def clone(self) -> LazyMergeFeature:
        """Return a new feature for another graph."""
        return type(self)()

    def __getstate__(self) -> dict[str, Any]:
        return {"_fgraph": self._fgraph} if "_fgraph" in vars(self) else {}

    def __getattr__(self, name: str) -> Any:
        # The table hashes variables and ops, which may be incomplete during unpickling. So it is
        # made anew on its first use.
        state = vars(self)
        if name.startswith("__") or "_fgraph" not in state or "merger" in state:
            raise AttributeError(name)
        self.begin(self._fgraph)
        return getattr(self, name)
