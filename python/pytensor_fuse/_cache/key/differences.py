"""Differences between two requests, in readable form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pytensor_fuse._identity.terms import constant_term, term

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor_fuse._cache.key.cache_key import Request
    from pytensor_fuse._identity.interning import InternedGraph

# The largest number of listed differences between two graphs.
_MOST = 5

# Longer parts are not shown.
_LONGEST = 100


def differences(request: Request, other: Request) -> Iterator[str]:
    """Yield the differences of ``request`` from ``other``; O(nodes + edges)."""
    ours, theirs = dict(request.parts), dict(other.parts)
    for name in dict.fromkeys((*ours, *theirs)):
        if name not in theirs:
            yield f"{name} was not there"
        elif name not in ours:
            yield f"{name} is not there any more"
        elif ours[name] != theirs[name]:
            new, was = repr(ours[name]), repr(theirs[name])
            # Some parts have an item for every variable.
            short = max(len(new), len(was)) <= _LONGEST
            yield f"{name}: {new} was {was}" if short else f"{name} differ"
    if request.registrations is not other.registrations:
        yield "rewriters or rules have been registered or removed"
    if request.graph.root != other.graph.root:
        yield from _differences_of_graphs(request.graph, other.graph)


def _differences_of_graphs(graph: InternedGraph, other: InternedGraph) -> Iterator[str]:
    inputs, n_constants, nodes, outputs = graph.rows.parts()
    their_inputs, their_n_constants, their_nodes, their_outputs = other.rows.parts()
    found = 0
    if len(inputs) != len(their_inputs):
        yield f"number of inputs: {len(inputs)} was {len(their_inputs)}"
        found += 1
    for position, (each, was) in enumerate(zip(inputs, their_inputs, strict=False)):
        if term(graph.types[each]) != term(other.types[was]):
            yield f"input {position}: {graph.types[each]} was {other.types[was]}"
            found += 1
    if n_constants == their_n_constants:
        readers = _readers(graph)
        for index, (one, old) in enumerate(zip(graph.constants, other.constants, strict=True)):
            if constant_term(one) != constant_term(old):
                at = readers.get(len(inputs) + index, "an output")
                yield f"constant at {at}: {_data_difference(one, old)}"
                found += 1
                if found >= _MOST:
                    return
    for position, (node, old_node) in enumerate(zip(nodes, their_nodes, strict=False)):
        op, old_op = graph.ops[node[0]], other.ops[old_node[0]]
        if term(op) != term(old_op):
            same = str(op) == str(old_op)
            what = "has other properties or another inner graph" if same else f"was {old_op}"
            yield f"node {position}: {op} {what}"
            found += 1
            break
        if node[1] != old_node[1]:
            yield f"node {position}: {op} reads other variables"
            found += 1
            break
    if len(nodes) != len(their_nodes):
        yield f"number of nodes: {len(nodes)} was {len(their_nodes)}"
        found += 1
    if outputs != their_outputs and not found:
        yield "the outputs are other variables"
        found += 1
    if not found:
        yield "the graphs differ"


def _readers(graph: InternedGraph) -> dict[int, str]:
    """Return for each variable its first reader, with the input's position."""
    found: dict[int, str] = {}
    for op, read, _ in graph.rows.parts()[2]:
        for position, variable in enumerate(read):
            found.setdefault(variable, f"{graph.ops[op]}.{position}")
    return found


def _data_difference(constant: Any, old: Any) -> str:
    new, was = constant.data, old.data
    if isinstance(new, np.ndarray) and isinstance(was, np.ndarray):
        if new.shape != was.shape or new.dtype != was.dtype:
            return f"{new.dtype}{list(new.shape)} was {was.dtype}{list(was.shape)}"
        if new.size > 1:
            rows = np.ascontiguousarray(new).reshape(-1).view(np.uint8).reshape(new.size, -1)
            others = np.ascontiguousarray(was).reshape(-1).view(np.uint8).reshape(new.size, -1)
            return f"{np.count_nonzero((rows != others).any(axis=1))} of {new.size} values"
    return f"{new!r} was {was!r}"
