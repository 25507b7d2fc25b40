"""Passes that can tell at once which nodes they do nothing with, and whoever may ask them."""

from __future__ import annotations

from typing import Any, Protocol

from pytensor.graph.rewriting.basic import WalkingGraphRewriter


class RefusedOps(Protocol):
    """Whatever knows which ops a pass does nothing with."""

    def has(self, op: Any) -> bool:
        """Whether it does nothing with nodes of ``op``."""


class ChoosyWalk(WalkingGraphRewriter):
    """A pass that tells the loop of the accelerator `rewriter_loops` what it need not process.

    Its `process_node` must return False for these nodes all the same: the loop may be PyTensor's.
    """

    refused: RefusedOps
