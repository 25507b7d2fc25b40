"""Candidates: the node rewriters that a tracker finds for an op."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from pytensor.graph.rewriting.basic import OpToRewriterTracker

from pytensor_fuse._accelerators.prefilters import drop_in as prefilters
from pytensor_fuse._accelerators.rewriter_loops.alike_ops import Kinds, Memo
from pytensor_fuse._accelerators.rewriter_loops.node_rewriters import (
    TRANSFORM,
    is_plain,
    transforms_as_stock,
)
from pytensor_fuse._pytensor.rewriting.node_trackers import LOOKUP

if TYPE_CHECKING:
    from pytensor.graph.op import Op

    # A node rewriter, its number, whether it is a function and no more, and what it needs.
    Candidate = tuple[Any, int, bool, prefilters.Wants]


def has_own_lookup(tracker: Any) -> bool:
    """Whether nobody counts what a tracker is asked."""
    return type(tracker) is OpToRewriterTracker and LOOKUP not in vars(OpToRewriterTracker)


class Candidates:
    """The candidates of a tracker by op, each with its number among all rewriters of the tracker.

    Trackers that are copies of each other share it (`_accelerators.queries.drop_in`).
    """

    def __init__(self, tracker: Any) -> None:
        if tracker._cached_composed_mro is None:
            tracker._get_trackers(None)
        # It is another one once a rewriter has been added.
        self.mro = tracker._cached_composed_mro
        self._find = tracker._get_trackers
        self._prefilters = prefilters.in_use
        self.rewriters: list[Any] = list(dict.fromkeys(tracker.get_rewriters()))
        self.no_seconds = dict.fromkeys(self.rewriters, 0.0)
        self.no_time = [0.0] * len(self.rewriters)
        # By the address of a rewriter: that as a candidate, and what it wants of an op.
        self._entries = {
            id(rw): ((rw, number, is_plain(rw), prefilters.WHATEVER), prefilters.wants_by(rw))
            for number, rw in enumerate(self.rewriters)
        }
        self._were = [(rw, vars(rw), *_parts(rw)) for rw in self.rewriters]
        self._transforms = transforms_as_stock()
        self._known: Memo[list[Candidate]] = Memo(
            Kinds(
                tracker.tracked_instances,
                tuple(tracker.tracked_pattern_types),
                prefilters.TOLD_APART if self._prefilters else (),
            )
        )
        # Each list once, by the addresses of its rewriters and what they want.
        self._lists: dict[tuple[int, ...], list[Candidate]] = {}
        # By the address of a list, which is kept.
        self._wants: dict[int, prefilters.Wants] = {}

    def __reduce__(self) -> Any:
        # Copies of a tracker find out for themselves.
        return dict, ()

    def is_of(self, tracker: Any) -> bool:
        """Whether nobody has added a rewriter since, or given one another method."""
        if (
            self.mro is not tracker._cached_composed_mro
            or self.mro is None
            or self._prefilters is not prefilters.in_use
            or self._transforms is not transforms_as_stock()
        ):
            return False
        for rewriter, own, class_, function in self._were:
            if type(rewriter) is not class_ or own.get("fn") is not function or TRANSFORM in own:
                return False
        return True

    def candidate(self, rewriter: Any) -> Candidate:
        """Return the candidate of a rewriter of the tracker, without wants."""
        return self._entries[id(rewriter)][0]

    def candidates(self, op: Op) -> list[Candidate]:
        """Return the rewriters that the tracker finds for an op, in order.

        Those are left out that can do nothing with it.
        """
        found = self._known.get(op)
        if found is None:
            found = self._new(op)
            self._known.remember(op, found)
        return found

    def has(self, op: Op) -> bool:
        """Whether there are none."""
        return not self.candidates(op)

    def wants(self, op: Op) -> prefilters.Wants:
        """Return the union of the candidates' wants for nodes of an op."""
        candidates = self.candidates(op)
        wants = self._wants.get(id(candidates))
        if wants is None:
            wanted = [wants for *_, wants in candidates]
            wants = prefilters.WHATEVER if prefilters.WHATEVER in wanted else reduce(or_, wanted, 0)
            self._wants[id(candidates)] = wants
        return wants

    def _new(self, op: Op) -> list[Candidate]:
        rewriters = self._find(op)
        entries = self._entries
        key: list[int] = []
        found: list[Candidate] = []
        for rewriter in rewriters:
            candidate, wants_by = entries[id(rewriter)]
            if wants_by is not None and candidate[2]:
                wants = wants_by(op)
                if wants == prefilters.NOTHING:
                    continue
                if wants:
                    candidate = *candidate[:3], wants
                    key.append(wants)
            key.append(-candidate[1])
            found.append(candidate)
        return self._lists.setdefault(tuple(key), found)


def _parts(rewriter: Any) -> tuple[type, Any]:
    return type(rewriter), vars(rewriter).get("fn")


_FOUND = "_pytensor_fuse_found"


def found_by(tracker: Any) -> Candidates:
    """Return the candidates of a tracker, which are cached on it."""
    kept: Any = vars(tracker).get(_FOUND)
    if type(kept) is Candidates and kept.is_of(tracker):
        return kept
    found = vars(tracker)[_FOUND] = Candidates(tracker)
    return found
