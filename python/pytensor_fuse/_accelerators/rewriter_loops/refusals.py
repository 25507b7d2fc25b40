"""Refusals: the ops that a node rewriter refuses at once, and the inputs that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pytensor.graph.rewriting.basic import (
    FromFunctionNodeRewriter,
    OpToRewriterTracker,
    SequentialNodeRewriter,
)

from pytensor_fuse._accelerators.prefilters import drop_in as prefilters
from pytensor_fuse._accelerators.rewriter_loops.alike_ops import Kinds, Memo
from pytensor_fuse._accelerators.rewriter_loops.candidates import Candidates, found_by
from pytensor_fuse._accelerators.rewriter_loops.node_rewriters import (
    TRANSFORM,
    is_plain,
    transforms_as_stock,
)
from pytensor_fuse._pytensor.rewriting.node_trackers import LOOKUP

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.op import Op

_stock_group_transform = SequentialNodeRewriter.transform


class Refusals:
    """The ops that a node rewriter refuses at once, with one answer for all ops that are alike.

    Attributes
    ----------
    depends_on
        What of the rewriter the answers depend on.
    """

    def __init__(
        self, depends_on: tuple[Any, ...], refuses: Callable[[Op], bool], kinds: Kinds
    ) -> None:
        self.depends_on = depends_on
        self._refuses = refuses
        self._known: Memo[bool] = Memo(kinds)

    def has(self, op: Op) -> bool:
        """Whether nodes of ``op`` are refused."""
        known = self._known.get(op)
        if known is None:
            known = self._refuses(op)
            self._known.remember(op, known)
        return known


# The passes of all graphs have the same rewriters.
_kept: WeakKeyDictionary[Any, Refusals] = WeakKeyDictionary()


def refusals_of(rewriter: Any) -> Refusals | Candidates | None:
    """Return the refusals of a node rewriter; None if they are unknown."""
    if LOOKUP in vars(OpToRewriterTracker):
        # Somebody counts what is asked.
        return None
    depends_on: tuple[Any, ...]
    if type(rewriter) is FromFunctionNodeRewriter and rewriter._tracks:
        if not transforms_as_stock() or TRANSFORM in vars(rewriter):
            return None
        ops, types = rewriter._tracked_ops, rewriter._tracked_types
        patterns, pattern_types = (
            rewriter._tracked_op_patterns,
            rewriter._tracked_op_pattern_types,
        )
        depends_on = ops, types, patterns, pattern_types

        def refuses(op: Op) -> bool:
            return not (
                (ops and op in ops)
                or isinstance(op, types)
                or (
                    isinstance(op, pattern_types)
                    and any(t.match_parameters(op) for t in patterns if isinstance(op, t.op_type))
                )
            )

        kinds = Kinds(ops, pattern_types)
    elif (
        type(rewriter) is SequentialNodeRewriter
        and type(rewriter.tracker) is OpToRewriterTracker
        and rewriter.rewrites
        and TRANSFORM not in vars(rewriter)
        and SequentialNodeRewriter.transform is _stock_group_transform
    ):
        return found_by(rewriter.tracker)
    else:
        return None
    kept = _kept.get(rewriter)
    if kept is None or not all(
        a is b or (type(a) is int and a == b)
        for a, b in zip(kept.depends_on, depends_on, strict=False)
    ):
        kept = _kept[rewriter] = Refusals(depends_on, refuses, kinds)
    return kept


def wanted_by(
    rewriter: Any, refusals: Refusals | Candidates | None
) -> Callable[[Op], prefilters.Wants] | None:
    """Return the wants of a node rewriter as a function of the op; None if they are unknown."""
    if not prefilters.in_use or LOOKUP in vars(OpToRewriterTracker):
        return None
    if isinstance(refusals, Candidates):
        return refusals.wants
    return prefilters.wants_by(rewriter) if is_plain(rewriter) else None
