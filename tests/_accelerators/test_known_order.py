"""The order of a graph that is as it was is not found anew; of one that changed it is."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytensor.tensor as pt
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import toposort

from pytensor_fuse._accelerators.rewriter_loops.unchanged_graphs import in_order

numbers = st.integers(0, 30)


@given(
    program=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12),
    edits=st.lists(st.tuples(numbers, numbers, st.integers(0, 3)), max_size=8),
)
def test_edits_in_all_ways(
    program: list[tuple[int, int]], edits: list[tuple[int, int, int]]
) -> None:
    x, y = pt.vectors("x", "y")
    made: list[Any] = [x, y]
    for a, b in program:
        made.append(made[-1 - a % len(made)] + made[-1 - b % len(made)])
    fgraph = FunctionGraph([x, y], made[-2:], clone=False)

    def check() -> None:
        found = in_order(fgraph, fgraph.outputs)
        assert found == list(toposort(fgraph.outputs))
        assert in_order(fgraph, fgraph.outputs) is found

    check()
    for a, b, kind in edits:
        nodes = list(toposort(fgraph.outputs))
        if not nodes:
            break
        node = nodes[a % len(nodes)]
        match kind:
            case 0:
                fgraph.replace(
                    node.outputs[0], pt.exp(node.inputs[b % len(node.inputs)]), import_missing=True
                )
            case 1:
                fgraph.change_node_input(node, b % len(node.inputs), pt.sqr(x))
            case 2:
                # Behind the back of the graph, and back.
                position = b % len(node.inputs)
                old, node.inputs[position] = node.inputs[position], y
                check()
                node.inputs[position] = old
            case _:
                fgraph.add_output(node.outputs[0])
        check()


def test_from_other_variables_it_is_found_each_time() -> None:
    x = pt.vector("x")
    inner = pt.exp(x)
    fgraph = FunctionGraph([x], [pt.sin(inner)], clone=False)
    assert len(in_order(fgraph, fgraph.outputs)) == 2
    assert in_order(fgraph, [inner]) == [inner.owner]
    assert len(in_order(fgraph, fgraph.outputs)) == 2


def test_graphs_are_not_kept_alive() -> None:
    def order() -> tuple[Any, Any]:
        x = pt.vector("x")
        fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
        (node,) = in_order(fgraph, fgraph.outputs)
        return weakref.ref(fgraph), weakref.ref(node)

    found = [order() for _ in range(3)]
    # The graphs first, and then what was kept for them.
    gc.collect()
    gc.collect()
    assert not any(graph() or node() for graph, node in found)
