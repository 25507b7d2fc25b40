"""Differences of two recordings, pass by pass and rewriter by rewriter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pytensor_fuse._trace.records import PassTotal, RewriterTotal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor_fuse._trace.recording import Recording

_Total = TypeVar("_Total", PassTotal, RewriterTotal)


@dataclass(frozen=True)
class Difference:
    """Two recordings, whose totals are compared by name."""

    before: Recording
    after: Recording

    @property
    def passes(self) -> tuple[tuple[str, PassTotal | None, PassTotal | None], ...]:
        """Name, before and after of each pass, by change of time; None where it is missing."""
        return _paired(self.before.passes, self.after.passes)

    @property
    def rewriters(self) -> tuple[tuple[str, RewriterTotal | None, RewriterTotal | None], ...]:
        """Name, before and after of each node rewriter, as in `passes`."""
        return _paired(self.before.rewriters, self.after.rewriters)


def _paired(
    before: Iterable[_Total], after: Iterable[_Total]
) -> tuple[tuple[str, _Total | None, _Total | None], ...]:
    first = {total.name: total for total in before}
    second = {total.name: total for total in after}

    def change(name: str) -> tuple[float, str]:
        own = [0.0 if total is None else total.own for total in (first.get(name), second.get(name))]
        return -abs(own[1] - own[0]), name

    names = sorted({**first, **second}, key=change)
    return tuple((name, first.get(name), second.get(name)) for name in names)


def call_totals(recording: Recording) -> dict[str, float]:
    """Return the sums over all calls, by quantity; times are floats."""
    counts = ("nodes_before", "nodes_after", "created", "removed")
    return {
        "calls": len(recording.calls),
        **{name: _sum(recording, name, 0.0) for name in ("seconds", "rewriting", "linking")},
        **{name: _sum(recording, name, 0) for name in counts},
    }


def _sum(recording: Recording, name: str, start: float) -> float:
    return sum((getattr(call, name) for call in recording.calls), start)
