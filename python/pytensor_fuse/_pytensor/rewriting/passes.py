"""Contents and results of PyTensor's passes: node rewriters, other passes, and a profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytensor.graph.rewriting.basic import NodeRewriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytensor.graph.rewriting.basic import GraphRewriter, Rewriter


@dataclass(frozen=True)
class WalkProfile:
    """The profile of a pass that walks over the graph with one node rewriter.

    Attributes
    ----------
    fired
        How often it changed the graph.
    seconds
        Duration of the walk.
    """

    fired: int
    seconds: float


@dataclass(frozen=True)
class EquilibriumProfile:
    """The profile of a pass that repeats its rewriters until nothing changes.

    Attributes
    ----------
    rounds
        Seconds, nodes and changes of each round.
    seconds
        Seconds of each rewriter.
    fired
        Number of changes of the graph by each rewriter, by round.
    """

    rounds: tuple[tuple[float, int, int], ...]
    seconds: Mapping[Rewriter, float]
    fired: Sequence[Mapping[Rewriter, int]]

    def node_rewriters(self) -> Iterator[tuple[NodeRewriter, float, int]]:
        """Yield the node rewriters, their seconds and changes. Slow: call it after the pass."""
        for rewriter, spent in self.seconds.items():
            if isinstance(rewriter, NodeRewriter):
                yield rewriter, spent, sum(fired.get(rewriter, 0) for fired in self.fired)


def walk_profile(result: object) -> WalkProfile | None:
    """Read the result of ``WalkingGraphRewriter.apply``; None if it is something else."""
    if not isinstance(result, tuple) or len(result) != 8:
        return None
    _, fired, _, _, _, seconds, _, _ = result
    return WalkProfile(fired, seconds)


def equilibrium_profile(result: object) -> EquilibriumProfile | None:
    """Read the result of ``EquilibriumGraphRewriter.apply``; None if it is something else."""
    if not isinstance(result, tuple) or len(result) != 12:
        return None
    _, seconds, counts, _, _, n_nodes, times, *_ = result
    rounds = tuple(
        (taken, n, sum(count.values()))
        for taken, n, count in zip(seconds, n_nodes, counts, strict=True)
    )
    return EquilibriumProfile(rounds, times, counts)


def walked_with(walk: GraphRewriter) -> NodeRewriter | None:
    """Return the node rewriter of a pass that walks.

    A subclass may lack attributes that its base class's constructor sets.
    """
    rewriter: NodeRewriter | None = getattr(walk, "node_rewriter", None)
    return rewriter


def passes_beside(equilibrium: GraphRewriter) -> tuple[GraphRewriter, ...]:
    """Return the passes that an equilibrium runs besides its node rewriters."""
    lists: list[Any] = [
        getattr(equilibrium, name, None)
        for name in ("global_rewriters", "final_rewriters", "cleanup_rewriters")
    ]
    return tuple(each for found in lists for each in found or ())
