"""The order in which a compiled function runs its nodes, for each of PyTensor's linkers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.link.vm import Loop, Stack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytensor.compile.executor import Function
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph


def run_order(function: Function) -> tuple[tuple[Apply[Any], ...], bool]:
    """Return the nodes of a function in the order in which they run, and whether it is certain.

    The order depends on values if nodes choose what to run.
    """
    vm, maker = function.vm, function.maker
    nodes, thunks = getattr(vm, "nodes", None), getattr(vm, "thunks", None)
    if nodes is None or thunks is None:
        return tuple(maker.linker.schedule(maker.fgraph)), True
    if isinstance(vm, Loop):
        return tuple(nodes), True
    lazy = any(getattr(thunk, "lazy", False) for thunk in thunks)
    if isinstance(vm, Stack):
        return tuple(nodes), False
    return tuple(_on_demand(maker.fgraph, nodes)), not lazy


def _on_demand(fgraph: FunctionGraph, nodes: Sequence[Apply[Any]]) -> list[Apply[Any]]:
    """Return the nodes in the order in which PyTensor's C virtual machine reaches them.

    It computes one output after another: first the nodes that must precede a node, then the node's
    inputs from left to right, then the node.
    """
    numbers: dict[Variable[Any, Any], int] = {}
    for node in nodes:
        for variable in (*node.inputs, *node.outputs):
            numbers.setdefault(variable, len(numbers))
    before = {
        node: sorted(
            {v for earlier in prerequisites for v in earlier.outputs}, key=numbers.__getitem__
        )
        for node, prerequisites in fgraph.orderings().items()
    }
    order: dict[Apply[Any], None] = {}
    for output in fgraph.outputs:
        stack = [] if output.owner is None else [(output.owner, iter(_needs(output.owner, before)))]
        while stack:
            node, needs = stack[-1]
            if node in order:
                stack.pop()
                continue
            for needed in needs:
                if needed.owner is not None and needed.owner not in order:
                    stack.append((needed.owner, iter(_needs(needed.owner, before))))
                    break
            else:
                order[node] = None
                stack.pop()
    return list(order)


def _needs(
    node: Apply[Any], before: Mapping[Apply[Any], list[Variable[Any, Any]]]
) -> list[Variable[Any, Any]]:
    return [*before.get(node, ()), *node.inputs]
