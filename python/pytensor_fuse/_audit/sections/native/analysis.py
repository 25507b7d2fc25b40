"""Analysis of whether a graph is machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.graph.fg import FunctionGraph

from pytensor_fuse._audit.sections.native.section import NativeSection
from pytensor_fuse._native.explain.explain import native_state, not_native
from pytensor_fuse._native.explain.records import NativeState

if TYPE_CHECKING:
    from pytensor_fuse._audit.context.graph import GraphContext


def audit_native(context: GraphContext) -> NativeSection:
    """Ask the lowering rules about each node; O(nodes)."""
    assert isinstance(context.fgraph, FunctionGraph), "only inner graphs are frozen"
    refused = not_native(context.fgraph, context.order)
    state = native_state(context.function, refused)
    return NativeSection(state, () if state is NativeState.OTHER else refused)
