"""PyTensor's databases of rewriters: registered entries, and entries that are added and removed."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytensor.compile.mode import optdb
from pytensor.graph.rewriting.db import RewriteDatabase
from pytensor.misc.ordered_set import OrderedSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytensor.compile.mode import Mode
    from pytensor.graph.rewriting.basic import GraphRewriter

FUSION_SEQUENCE: Final = "elemwise_fusion"
FUSION_ENTRY: Final = "composite_elemwise_fusion"


def registered_fusion() -> object | None:
    """Return PyTensor's registered fusion pass, or None."""
    # Looking up an unknown name in a database would add the name.
    if FUSION_SEQUENCE not in optdb or FUSION_ENTRY not in optdb[FUSION_SEQUENCE]:
        return None
    rewriter: object = optdb[FUSION_SEQUENCE][FUSION_ENTRY]
    return rewriter


def rewriters_before_fusion(mode: Mode) -> GraphRewriter:
    """Return the rewriters that ``mode`` runs before the fusion pass."""
    query = copy.copy(mode._optimizer)
    query.position_cutoff = optdb.__position__[FUSION_SEQUENCE]
    rewriter: GraphRewriter = optdb.query(query)
    return rewriter


def registered_rewriters() -> Iterator[object]:
    """Find all rewriters in `optdb` and the databases in it, each once, in order."""
    pending: list[RewriteDatabase] = [optdb]
    known = {id(optdb)}
    while pending:
        # A query in another thread may add a tag.
        for rewriters in list(vars(pending.pop())["__db__"].values()):
            for rewriter in rewriters:
                if id(rewriter) in known:
                    continue
                known.add(id(rewriter))
                if RewriteDatabase in type(rewriter).__mro__:
                    pending.append(rewriter)
                else:
                    yield rewriter


class Entry(NamedTuple):
    """A rewriter to be registered in `optdb`.

    Attributes
    ----------
    rewriter
        The rewriter, with its name.
    position
        Its position among the others.
    tags
        The tags that queries name, besides its name.
    """

    rewriter: Any
    position: float
    tags: tuple[str, ...]


class ListedRewriters:
    """A patch that registers rewriters of this package, and removes every trace of them.

    PyTensor's `register` fails if a query has named the rewriter before, and there is no function
    that removes an entry. Sets and dicts are replaced, not changed, as another thread may be in the
    middle of a query.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = tuple(entries)

    def prepare(self) -> None:
        """Do nothing: there is nothing to find."""

    def apply(self) -> None:
        """Register them, in their order."""
        self._list(True)

    def undo(self) -> None:
        """Remove them."""
        self._list(False)

    def holds(self) -> bool:
        """Whether they are registered."""
        return all(entry.rewriter.name in optdb._names for entry in self._entries)

    def _list(self, on: bool) -> None:
        entries = [entry for entry in self._entries if on != (entry.rewriter.name in optdb._names)]
        places = {entry.rewriter.name: entry.position for entry in entries}
        listed: dict[str, list[Any]] = {}
        for entry in entries:
            for key in (entry.rewriter.name, *entry.tags):
                listed.setdefault(key, []).append(entry.rewriter)
        others = {key: place for key, place in optdb.__position__.items() if key not in places}
        optdb.__position__ = {**others, **places} if on else others
        optdb._names = optdb._names | places.keys() if on else optdb._names - places.keys()
        tags = vars(optdb)["__db__"]
        for key, ours in listed.items():
            rewriters = _without(tags.get(key, ()), ours)
            if on:
                rewriters += ours
            if rewriters:
                tags[key] = OrderedSet(rewriters)
            else:
                del tags[key]


def _without(rewriters: Iterable[Any], removed: Iterable[Any]) -> list[Any]:
    """Return the rewriters that are not to be removed, compared by identity."""
    ids = set(map(id, removed))
    return [rewriter for rewriter in rewriters if id(rewriter) not in ids]
