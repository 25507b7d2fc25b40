"""The part of `MergeFeature`'s interface that PyTensor's own pass and rewrites read.

PyTensor's pass takes merges from `scheduled` (it can meet our feature in a compile during which the
package was switched off); a rewrite of indexing looks for equal constants in `atomic_sig_inv`.
"""

from __future__ import annotations

from collections import UserList
from typing import TYPE_CHECKING, Any

from pytensor.graph.type import Type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor.graph.basic import Variable

    from pytensor_fuse._merging.merger import Merger

    Var = Variable[Any, Any]
    # Alternative ways to merge a node or constant, each a list of replacements.
    Entry = list[list[tuple[Var, Var, str]]]


class Schedule(UserList["Entry"]):
    """The pending merges, computed on each access, in the form that PyTensor's pass takes."""

    def __init__(self, merger: Merger) -> None:
        self._merger = merger
        self._entries: list[Entry] = []

    @property
    def data(self) -> list[Entry]:  # type: ignore[override]
        while self._merger.pending:
            plan = self._merger.plan(one_at_a_time=True)
            for node, other in [*plan.dying, *plan.incomparable]:
                self._entries.append([_merges(zip(node.outputs, other.outputs, strict=True))])
            if not plan.dying:
                self._entries += [[_merges([pair])] for pair in plan.replacements]
        return self._entries

    def return_unmerged(self) -> None:
        """Make the merges that no pass has taken pending again."""
        for entry in self._entries:
            for old, _, _ in (replacement for candidate in entry for replacement in candidate):
                self._merger.look_up_users(old)
        self._entries.clear()


class ConstantsBySignature:
    """The constants of a graph by their PyTensor signatures, compared bit for bit."""

    def __init__(self, merger: Merger) -> None:
        self._merger = merger

    def get(self, signature: Any, default: Any) -> Any:
        """Return the constant with this signature: a pair of a type and data."""
        if not (isinstance(signature, tuple) and len(signature) == 2):
            return default
        type_, data = signature
        found = self._merger.find_constant(type_, data) if isinstance(type_, Type) else None
        return default if found is None else found


def _merges(pairs: Iterable[tuple[Var, Var]]) -> list[tuple[Var, Var, str]]:
    return [(old, new, "merge") for old, new in pairs]
