"""Recordings: the complete data of a trace, and totals over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytensor_fuse._trace.records import PassTotal, RewriterTotal, TracedCall, TracedPass

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Recording:
    """The data of a trace, from which texts, pages and dicts are made.

    Attributes
    ----------
    calls
        The calls of `pytensor.function`, in the order of their ends.
    outside
        The passes that ran outside any such call.
    seconds
        How long the trace was open.
    versions
        The versions of PyTensor and of this package.
    """

    calls: tuple[TracedCall, ...]
    outside: tuple[TracedPass, ...]
    seconds: float
    versions: dict[str, str]

    @property
    def rewriters(self) -> tuple[RewriterTotal, ...]:
        """Totals of the node rewriters over all passes, by own time, the slowest first.

        Rewriters with the same name are merged: usually the same one in several databases.
        """
        totals: dict[str, RewriterTotal] = {}
        for each in self.all_passes():
            for rewriter in each.rewriters:
                total = totals.setdefault(rewriter.name, RewriterTotal(rewriter.name))
                total.tried += rewriter.tried or 0
                total.fired += rewriter.fired or 0
                total.is_whole &= None not in (rewriter.tried, rewriter.fired)
                total.seconds += rewriter.seconds or 0.0
                total.own += rewriter.own or 0.0
                total.created += rewriter.created
                total.removed += rewriter.removed
                if each.name not in total.passes:
                    total.passes.append(each.name)
        for each in self.all_passes():
            for rewriter in each.rewriters:
                # The time of a group's members is theirs, not the group's.
                if rewriter.group in totals:
                    totals[rewriter.group].own -= rewriter.own or 0.0
        return tuple(sorted(totals.values(), key=lambda total: (-total.own, total.name)))

    @property
    def never_fired(self) -> tuple[RewriterTotal, ...]:
        """The node rewriters that changed nothing, whether they were tried or not."""
        return tuple(t for t in self.rewriters if t.fired == 0 and t.is_whole)

    @property
    def passes(self) -> tuple[PassTotal, ...]:
        """Totals of the passes over all calls, by own time, the slowest first."""
        totals: dict[str, PassTotal] = {}
        for each in self.all_passes():
            total = totals.setdefault(each.name, PassTotal(each.name))
            total.runs += each.runs
            total.seconds += each.seconds
            total.own += each.alone
            total.created += each.created
            total.removed += each.removed
        return tuple(sorted(totals.values(), key=lambda total: (-total.own, total.name)))

    def slowest(self, n: int = 10) -> tuple[PassTotal | RewriterTotal, ...]:
        """Return the passes and node rewriters with the longest own times.

        The own times of all of them add up to the time of all passes.

        Raises
        ------
        ValueError
            If ``n`` is negative.
        """
        if n < 0:
            raise ValueError(f"cannot list {n} of them")
        totals: list[PassTotal | RewriterTotal] = [*self.rewriters, *self.passes]
        return tuple(sorted(totals, key=lambda total: (-total.own, total.name))[:n])

    def all_passes(self) -> Iterator[TracedPass]:
        """Yield all passes in preorder."""
        pending: list[TracedPass | TracedCall] = [*self.calls, *self.outside]
        pending.reverse()
        while pending:
            each = pending.pop()
            if isinstance(each, TracedPass):
                yield each
            pending.extend(reversed(each.inner))
