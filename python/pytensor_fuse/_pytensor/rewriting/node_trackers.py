"""The node rewriters that PyTensor tries on an op: its trackers, and replacements for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.graph.rewriting.basic import OpToRewriterTracker, SequentialNodeRewriter

from pytensor_fuse._pytensor.compat.packages import is_pytensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytensor.graph.op import Op
    from pytensor.graph.rewriting.basic import NodeRewriter

    Lookup = Callable[[Op], list[NodeRewriter]]

# The attribute of trackers that the passes call.
LOOKUP = "get_trackers"


def lookup_of(tracker: OpToRewriterTracker) -> Lookup:
    """Return the tracker's own function from ops to node rewriters, which returns cached lists."""
    own: Lookup = vars(tracker)[LOOKUP]
    return own


def lookup_property(
    answer: Callable[[OpToRewriterTracker], Callable[[Op], Iterable[NodeRewriter]]],
) -> property:
    """Return a property whose getter ``answer`` returns each tracker's function.

    Each tracker has an attribute of that name; a property of the class takes precedence.
    """

    def keep(tracker: OpToRewriterTracker, own: Lookup) -> None:
        vars(tracker)[LOOKUP] = own

    return property(answer, keep)


class SeenOps:
    """The ops that a node rewriter accepts, if its class tests that itself."""

    __slots__ = ("_known", "_tracker", "rewriter")

    def __init__(self, rewriter: NodeRewriter) -> None:
        self.rewriter = rewriter
        self._tracker = _refusing_tracker(rewriter)
        # By the address of the op, which is kept so that no other op gets the address.
        self._known: dict[int, tuple[bool, Op]] = {}

    def has(self, op: Op) -> bool:
        """Whether the rewriter accepts nodes of ``op``."""
        if self._tracker is None:
            return True
        known = self._known.get(id(op))
        if known is None:
            # The tracker's other function hashes the op each time.
            known = bool(self._tracker._get_trackers(op)), op
            self._known[id(op)] = known
        return known[0]


def _refusing_tracker(rewriter: NodeRewriter) -> OpToRewriterTracker | None:
    """Return the tracker of the ops of ``rewriter``, if its ``transform`` refuses other ops."""
    if not is_pytensors(type(rewriter).transform) or isinstance(rewriter, SequentialNodeRewriter):
        return None
    tracker = OpToRewriterTracker()
    try:
        tracker.add_tracker(rewriter)
    except NotImplementedError:
        # It tracks a union of classes, which only passes that query each node can run.
        return None
    return None if tracker.untracked_rewrites else tracker
