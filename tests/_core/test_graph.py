"""The graph core against slow and obvious answers."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytensor_fuse._core import ERROR_KINDS, schedule_loops
from pytensor_fuse.graph import (
    AncestorSets,
    ContractionError,
    CycleError,
    EdgeError,
    Graph,
    GraphError,
    HashConsTable,
    IdError,
    MemoryLimitError,
)

Edges = list[tuple[int, int]]


@st.composite
def digraphs(draw: st.DrawFn, max_nodes: int = 12) -> tuple[int, Edges]:
    n_nodes = draw(st.integers(0, max_nodes))
    if n_nodes < 2:
        return n_nodes, []
    node = st.integers(0, n_nodes - 1)
    edge = st.tuples(node, node).filter(lambda edge: edge[0] != edge[1])
    return n_nodes, draw(st.lists(edge, max_size=2 * n_nodes))


@st.composite
def dags(draw: st.DrawFn, max_nodes: int = 12) -> tuple[int, Edges]:
    n_nodes, edges = draw(digraphs(max_nodes))
    order = draw(st.permutations(range(n_nodes)))
    return n_nodes, [(order[min(edge)], order[max(edge)]) for edge in edges]


def build(n_nodes: int, edges: Edges, dtype: str = "int64") -> Graph:
    sources, targets = np.array(edges, dtype=dtype).reshape(-1, 2).T
    return Graph(n_nodes, sources, targets)


def reachability(n_nodes: int, edges: Edges) -> np.ndarray:
    """``[a, b]``: whether a path of at least one edge leads from a to b."""
    reach = np.zeros((n_nodes, n_nodes), dtype=bool)
    for source, target in edges:
        reach[source, target] = True
    for middle in range(n_nodes):
        reach |= np.outer(reach[:, middle], reach[middle])
    return reach


def contracted(blocks: Sequence[int], edges: Edges) -> Edges:
    pairs = [(blocks[a], blocks[b]) for a, b in edges]
    return [(a, b) for a, b in pairs if a != b]


def is_acyclic(n_nodes: int, edges: Edges) -> bool:
    return not reachability(n_nodes, edges).diagonal().any()


@given(digraphs(), st.sampled_from(["int32", "uint32", "int64", "int8", "uint64", ">i8"]))
def test_rows_hold_the_edges_in_order(case: tuple[int, Edges], dtype: str) -> None:
    n_nodes, edges = case
    graph = build(n_nodes, edges, dtype)
    assert (graph.n_nodes, graph.n_edges) == (n_nodes, len(edges))
    back = graph.transposed()
    for node in range(n_nodes):
        after = [b for a, b in edges if a == node]
        before = [a for a, b in edges if b == node]
        assert graph.successors(node).tolist() == back.predecessors(node).tolist() == after
        assert graph.predecessors(node).tolist() == back.successors(node).tolist() == before


def test_arrays_of_any_layout() -> None:
    expected = Graph(4, [0, 1, 2], [1, 2, 3]).toposort().tolist()
    interleaved = np.array([0, 1, 1, 2, 2, 3], dtype="int32")
    assert Graph(4, interleaved[::2], interleaved[1::2]).toposort().tolist() == expected
    backward = np.array([2, 1, 0])[::-1]
    assert Graph(4, backward, backward + 1).toposort().tolist() == expected
    raw = np.frombuffer(b"\0" + np.array([0, 1, 2]).tobytes(), dtype="int64", offset=1)
    assert not raw.flags.aligned
    assert Graph(4, raw, raw + 1).toposort().tolist() == expected
    frozen = np.array([0, 1, 2], dtype="uint32")
    frozen.flags.writeable = False
    assert Graph(4, frozen, (1, 2, 3)).toposort().tolist() == expected
    assert Graph(4, range(3), [np.int8(1), 2, 3]).toposort().tolist() == expected


def test_the_empty_graph() -> None:
    graph = Graph(0, [], [])
    assert (graph.n_nodes, graph.n_edges) == (0, 0)
    assert graph.toposort().tolist() == graph.toposort(key=[]).tolist() == []
    assert graph.convex_subgraphs([]).tolist() == []
    assert graph.is_convex([])
    sets = graph.ancestor_sets(memory_limit=0)
    assert sets.memory_used == 0
    assert sets.union([]).tolist() == []
    assert sets.can_contract([])
    sets.contract([])


def test_results_are_uint32_arrays() -> None:
    graph = Graph(3, [0, 1], [1, 2])
    sets = graph.ancestor_sets()
    for array in (
        graph.successors(0),
        graph.predecessors(0),
        graph.toposort(),
        graph.convex_subgraphs([0, 0, -1]),
        sets.ancestors(2),
        sets.descendants(0),
        sets.union([0]),
    ):
        assert array.dtype == np.uint32


def test_reprs_tell_the_size() -> None:
    graph = Graph(3, [0, 1], [1, 2])
    assert repr(graph) == "Graph(n_nodes=3, n_edges=2)"
    sets = AncestorSets(graph)
    assert repr(sets) == f"AncestorSets(n_nodes=3, memory_used={sets.memory_used})"


def naive_toposort(n_nodes: int, edges: Edges, key: Sequence[int]) -> list[int]:
    order: list[int] = []
    while len(order) < n_nodes:
        ready = [
            (key[node], node)
            for node in range(n_nodes)
            if node not in order and all(a in order for a, b in edges if b == node)
        ]
        order.append(min(ready)[1])
    return order


@given(dags(), st.data())
def test_toposort_takes_the_smallest_ready_node(
    case: tuple[int, Edges], data: st.DataObject
) -> None:
    n_nodes, edges = case
    graph = build(n_nodes, edges)
    assert graph.toposort().tolist() == naive_toposort(n_nodes, edges, [0] * n_nodes)
    key = data.draw(st.lists(st.integers(-2, 2), min_size=n_nodes, max_size=n_nodes))
    assert graph.toposort(key).tolist() == naive_toposort(n_nodes, edges, key)


@given(digraphs())
def test_a_cycle_is_listed(case: tuple[int, Edges]) -> None:
    n_nodes, edges = case
    graph = build(n_nodes, edges)
    if is_acyclic(n_nodes, edges):
        assert sorted(graph.toposort().tolist()) == list(range(n_nodes))
        return
    for call in (
        graph.toposort,
        graph.ancestor_sets,
        lambda: graph.convex_subgraphs([0] * n_nodes),
    ):
        with pytest.raises(CycleError) as caught:
            call()
        nodes = caught.value.nodes
        assert nodes[0] == min(nodes)
        assert len(set(nodes)) == len(nodes)
        assert all(edge in edges for edge in pairwise([*nodes, nodes[0]]))
        assert " -> ".join(map(str, nodes)) in str(caught.value)


@given(digraphs(), st.data())
def test_convexity_is_by_paths(case: tuple[int, Edges], data: st.DataObject) -> None:
    n_nodes, edges = case
    nodes = data.draw(st.lists(st.integers(0, n_nodes - 1), max_size=6)) if n_nodes else []
    reach = reachability(n_nodes, edges)
    comes_back = [
        node
        for node in range(n_nodes)
        if node not in nodes and reach[nodes, node].any() and reach[node, nodes].any()
    ]
    assert build(n_nodes, edges).is_convex(nodes) == (not comes_back)


@given(dags(), st.data())
def test_convex_subgraphs_are_legal_and_maximal(
    case: tuple[int, Edges], data: st.DataObject
) -> None:
    n_nodes, edges = case
    labels = data.draw(st.lists(st.integers(-1, 2), min_size=n_nodes, max_size=n_nodes))
    graph = build(n_nodes, edges)
    blocks = graph.convex_subgraphs(labels).tolist()
    assert blocks == graph.convex_subgraphs(np.array(labels, dtype="int32")).tolist()
    assert sorted(set(blocks)) == list(range(len(set(blocks))))
    assert is_acyclic(n_nodes, contracted(blocks, edges))
    assert all(blocks[a] <= blocks[b] for a, b in edges)
    for block in set(blocks):
        members = {node for node in range(n_nodes) if blocks[node] == block}
        assert len({labels[node] for node in members}) == 1
        assert len(members) == 1 or labels[min(members)] >= 0
        assert graph.is_convex(sorted(members))
        reached = {min(members)}
        while (
            grown := {x for e in edges if members.issuperset(e) and reached & {*e} for x in e}
            - reached
        ):
            reached |= grown
        assert reached == members
    for a, b in edges:
        if labels[a] == labels[b] >= 0 and blocks[a] != blocks[b]:
            merged = [blocks[a] if block == blocks[b] else block for block in blocks]
            assert not is_acyclic(n_nodes, contracted(merged, edges))


def test_blocks_that_are_convex_alone_can_make_a_joint_cycle() -> None:
    # a1 -> b1 and b2 -> a2, with bridges that join the a's and the b's.
    a1, b1, a2, b2 = range(4)
    graph = Graph(4, [a1, b2, a1, b2], [b1, a2, a2, b1])
    assert graph.is_convex([a1, a2])
    assert graph.is_convex([b1, b2])
    blocks = graph.convex_subgraphs([0, 1, 0, 1]).tolist()
    assert len(set(blocks)) == 3
    assert blocks[a1] <= blocks[b1]
    assert blocks[b2] <= blocks[a2]


@given(dags(), st.data())
def test_ancestors_are_reachability(case: tuple[int, Edges], data: st.DataObject) -> None:
    n_nodes, edges = case
    graph = build(n_nodes, edges)
    reach = reachability(n_nodes, edges) | np.eye(n_nodes, dtype=bool)
    sets, back = AncestorSets(graph), AncestorSets(graph.transposed())
    for a in range(n_nodes):
        assert sets.ancestors(a).tolist() == np.flatnonzero(reach[:, a]).tolist()
        assert sets.descendants(a).tolist() == np.flatnonzero(reach[a]).tolist()
        assert back.ancestors(a).tolist() == sets.descendants(a).tolist()
        assert [sets.is_ancestor(a, b) for b in range(n_nodes)] == reach[a].tolist()
    nodes = data.draw(st.lists(st.integers(0, n_nodes - 1), max_size=4)) if n_nodes else []
    assert sets.union(nodes).tolist() == np.flatnonzero(reach[:, nodes].any(axis=1)).tolist()


@given(dags(), st.data())
def test_contractions_follow_the_quotient(case: tuple[int, Edges], data: st.DataObject) -> None:
    n_nodes, edges = case
    sets = AncestorSets(build(n_nodes, edges))
    blocks = list(range(n_nodes))
    picks = st.lists(st.integers(0, n_nodes - 1), min_size=1, max_size=3)
    for nodes in data.draw(st.lists(picks, max_size=6)) if n_nodes else []:
        joined = {blocks[node] for node in nodes}
        merged = [blocks[nodes[0]] if block in joined else block for block in blocks]
        is_legal = is_acyclic(n_nodes, contracted(merged, edges))
        assert sets.can_contract(nodes) == is_legal
        if is_legal:
            sets.contract(nodes)
            blocks = merged
        else:
            with pytest.raises(ContractionError) as caught:
                sets.contract(nodes)
            assert blocks[caught.value.through] not in joined
        reach = reachability(n_nodes, contracted(blocks, edges))
        for b in range(n_nodes):
            expected = [
                a for a in range(n_nodes) if blocks[a] == blocks[b] or reach[blocks[a], blocks[b]]
            ]
            assert sets.ancestors(b).tolist() == expected


def test_memory_is_refused_before_it_is_taken() -> None:
    n_nodes = 2_000_000
    graph = Graph(n_nodes, [], [])
    with pytest.raises(MemoryLimitError, match="2000000 nodes") as caught:
        graph.ancestor_sets()
    assert caught.value.limit == 2**30
    assert caught.value.needed > n_nodes**2 // 8
    small = Graph(1000, [], [])
    needed = small.ancestor_sets().memory_used
    AncestorSets(small, memory_limit=needed)
    with pytest.raises(MemoryLimitError):
        AncestorSets(small, memory_limit=needed - 1)


CHAIN = Graph(3, [0, 1], [1, 2])

# How to get an error of each kind, its class, what its message says, and its attributes.
ERRORS: dict[str, tuple[Callable[[], object], type[GraphError], str, dict[str, object]]] = {
    "too-large": (lambda: Graph(2**32, [], []), GraphError, "the graph has 4294967296", {}),
    "length-mismatch": (
        lambda: Graph(3, [0, 1], [1]),
        GraphError,
        "sources has 2 .* targets has 1",
        {},
    ),
    "edge-out-of-range": (
        lambda: Graph(3, [0, 1], [1, -1]),
        EdgeError,
        r"edge 1 \(1 -> -1\) .* 0\.\.3",
        {"edge": 1},
    ),
    "self-loop": (lambda: Graph(3, [0, 1], [1, 1]), EdgeError, "edge 1 .* node 1", {"edge": 1}),
    "backward-edge": (
        lambda: schedule_loops([0, 0, 0], [0, 2], [1, 1], [True, True]),
        EdgeError,
        r"edge 1 \(2 -> 1\) goes backward",
        {"edge": 1},
    ),
    "out-of-range": (lambda: CHAIN.successors(-1), IdError, "node -1", {"id": -1, "limit": 3}),
    "cycle": (
        lambda: Graph(3, [2, 1], [1, 2]).toposort(),
        CycleError,
        "1 -> 2",
        {"nodes": (1, 2)},
    ),
    "memory-limit": (
        lambda: CHAIN.ancestor_sets(1),
        MemoryLimitError,
        "limit of 1;",
        {"needed": CHAIN.ancestor_sets().memory_used, "limit": 1},
    ),
    "contraction": (
        lambda: CHAIN.ancestor_sets().contract([0, 2]),
        ContractionError,
        "through 1",
        {"through": 1},
    ),
    "no-term": (
        lambda: HashConsTable().digest(5),
        IdError,
        "no term 5",
        {"id": 5, "limit": 0},
    ),
    "inconsistent": (
        lambda: CHAIN.convex_subgraphs([0, -2, 0]),
        GraphError,
        "node 1 has label -2",
        {},
    ),
}


def test_every_kind_of_error_is_tested() -> None:
    assert set(ERRORS) == set(ERROR_KINDS)
    assert len(set(ERROR_KINDS)) == len(ERROR_KINDS)


@pytest.mark.parametrize("kind", ERRORS)
def test_errors_name_the_culprit(kind: str) -> None:
    call, expected, message, attributes = ERRORS[kind]
    with pytest.raises(expected, match=message) as caught:
        call()
    error = caught.value
    assert type(error) is expected
    assert vars(error) == {"kind": kind, **attributes}
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_errors_are_also_the_builtin_ones() -> None:
    assert issubclass(GraphError, ValueError)
    assert issubclass(MemoryLimitError, MemoryError)
    assert issubclass(IdError, IndexError)


@pytest.mark.parametrize("node", [-1, 3, 2**32, -(2**32) + 1])
def test_ids_outside_the_graph_are_refused_everywhere(node: int) -> None:
    sets = CHAIN.ancestor_sets()
    for call in (
        lambda: CHAIN.successors(node),
        lambda: CHAIN.predecessors(node),
        lambda: CHAIN.is_convex([0, node]),
        lambda: sets.is_ancestor(node, 0),
        lambda: sets.is_ancestor(0, node),
        lambda: sets.ancestors(node),
        lambda: sets.descendants(node),
        lambda: sets.union([0, node]),
        lambda: sets.can_contract([0, node]),
        lambda: sets.contract([0, node]),
    ):
        with pytest.raises(IdError, match=rf"node {node} is outside 0\.\.3"):
            call()


@pytest.mark.parametrize("n_nodes", [-1, -(2**62)])
def test_a_negative_size_is_refused(n_nodes: int) -> None:
    with pytest.raises(IdError, match=f"n_nodes {n_nodes}"):
        Graph(n_nodes, [], [])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5], "sources .* float64"),
        (["a"], "sources .* dtype"),
        ([[0], [1]], "sources .* 2 dimensions"),
        (0, "sources .* 0 dimensions"),
        (None, "sources"),
        ([True], "sources .* bool"),
        ([2**63], "9223372036854775808 does not fit"),
        ([2**70], "sources .* object"),
    ],
)
def test_what_is_not_a_list_of_integers_is_refused(values: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Graph(3, values, [0])  # type: ignore[arg-type]  # that is the point


def test_lengths_are_compared() -> None:
    for call in (lambda: CHAIN.toposort([0]), lambda: CHAIN.convex_subgraphs([0])):
        with pytest.raises(GraphError, match="has 1 entries but nodes has 3"):
            call()


def test_deep_graphs_do_not_overflow_the_stack() -> None:
    n_nodes = 200_000
    chain = Graph(n_nodes, np.arange(n_nodes - 1), np.arange(1, n_nodes))
    assert (chain.toposort() == np.arange(n_nodes)).all()
    assert chain.is_convex([0, 1])
    assert not chain.convex_subgraphs(np.zeros(n_nodes, dtype="int64")).any()
    ring = Graph(n_nodes, np.arange(n_nodes), np.roll(np.arange(n_nodes), -1))
    with pytest.raises(CycleError) as caught:
        ring.toposort()
    assert len(caught.value.nodes) == n_nodes
    assert len(str(caught.value)) < 1000


def test_contraction_and_queries_from_several_threads() -> None:
    n_nodes = 400
    chain = Graph(n_nodes, np.arange(n_nodes - 1), np.arange(1, n_nodes))
    sets = chain.ancestor_sets()
    failures: list[Exception] = []

    def contract(start: int) -> None:
        try:
            for node in range(start, n_nodes - 1, 4):
                sets.contract([node, node + 1])
                assert sets.is_ancestor(node + 1, node)
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=contract, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sets.ancestors(0).tolist() == list(range(n_nodes))
