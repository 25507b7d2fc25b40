"""Arrays that are given to the core while another thread writes them."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from pytensor_fuse._core import plan_arrays
from pytensor_fuse.graph import Graph, HashConsTable, IdError

N_NODES = 300_000


@contextmanager
def written(array: np.ndarray, *states: np.ndarray) -> Iterator[None]:
    """Let a thread put the array into one state after the other, again and again."""
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            for state in states:
                # NumPy writes without the interpreter, so that this runs while the core reads.
                np.copyto(array, state)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
def test_a_graph_has_the_same_edges_both_ways(dtype):
    # Each node leads to one of two others, and no state, nor a mixture, is out of range.
    sources = np.arange(N_NODES, dtype=dtype)
    near, far = (sources + 1) % N_NODES, (sources + N_NODES // 2) % N_NODES
    targets = near.copy()
    with written(targets, near, far):
        for _ in range(10):
            graph = Graph(N_NODES, sources, targets)
            assert graph.n_edges == N_NODES
            back = graph.transposed()
            nodes = range(0, N_NODES, 997)
            for node in nodes:
                (target,) = graph.successors(node)
                assert target in (near[node], far[node])
                assert node in graph.predecessors(target)
                assert node in back.successors(target)


def test_keys_and_labels_are_one_state_from_first_to_last():
    chain = Graph(N_NODES, np.arange(N_NODES - 1), np.arange(1, N_NODES))
    loose = Graph(N_NODES, [], [])
    first = np.arange(N_NODES)
    keys = first.copy()
    with written(keys, first, first[::-1]):
        for _ in range(3):
            order = loose.toposort(keys)
            assert np.array_equal(np.sort(order), first)
    labels = np.zeros(N_NODES, dtype="int64")
    with written(labels, labels.copy(), first % 2):
        for _ in range(3):
            blocks = chain.convex_subgraphs(labels)
            assert (np.diff(blocks.astype("int64")) >= 0).all()


def test_what_is_given_is_neither_kept_nor_changed():
    sources, targets = np.array([0, 1, 2]), np.array([1, 2, 3])
    # Not contiguous, read-only, of other bytes, and of a class of its own.
    for given in [
        targets,
        np.repeat(targets, 2)[::2],
        targets[::-1][::-1],
        targets.astype(">i8"),
        targets.astype("uint64"),
        targets.astype("int8"),
        np.ma.masked_array(targets, [True, False, True]),
        targets.tolist(),
    ]:
        before = np.array(given)
        if isinstance(given, np.ndarray):
            given.setflags(write=False)
        graph = Graph(4, sources, given)
        assert [graph.successors(node).tolist() for node in range(4)] == [[1], [2], [3], []]
        assert np.array_equal(before, given)
    sources[:] = 3
    assert graph.successors(0).tolist() == [1]


def test_truth_values_may_be_any_bytes():
    problem = {
        "n_variables": 3,
        "input_offsets": np.array([0, 1, 2], dtype="uint32"),
        "inputs": np.array([0, 1], dtype="uint32"),
        "output_offsets": np.array([0, 1, 2], dtype="uint32"),
        "outputs": np.array([1, 2], dtype="uint32"),
        "groups": np.zeros(2, dtype="int32"),
        "links": np.zeros(3, dtype="int32"),
        "constants": np.zeros(3, dtype=bool),
        "max_operands": 10,
    }
    expected = plan_arrays(**problem, results=np.array([False, False, True]))
    found = plan_arrays(**problem, results=np.array([0, 0, 2], dtype="uint8").view(bool))
    assert all(np.array_equal(a, b) for a, b in zip(found[:2], expected[:2], strict=True))
    assert found[2:] == expected[2:]


def test_rows_that_are_written_are_refused_or_one_state():
    table = HashConsTable()
    op, kind = table.compound(b"op"), table.compound(b"type")
    leaf = table.input(0, kind)
    n_nodes = 100_000
    chain = np.arange(n_nodes, dtype="uint32")
    inputs = chain.copy()
    rows = {
        "node_ops": np.zeros(n_nodes, "uint32"),
        "input_offsets": np.arange(n_nodes + 1, dtype="uint32"),
        "type_offsets": np.arange(n_nodes + 1, dtype="uint32"),
        "output_types": np.zeros(n_nodes, "uint32"),
    }
    with written(inputs, chain, np.full_like(chain, n_nodes)):
        for _ in range(10):
            try:
                terms = table.intern(leaves=[leaf], ops=[op], types=[kind], inputs=inputs, **rows)
            except IdError:
                continue
            assert len(table) == n_nodes + 3
            del terms
    assert len(table) == 3
    table.check()


def test_a_daemon_thread_may_be_at_work_when_the_interpreter_ends() -> None:
    program = """
        import threading, time
        import numpy as np
        from pytensor_fuse import _core

        sources = np.arange(499_999)

        def work():
            while True:
                _core.Graph(500_000, sources, sources + 1)

        for _ in range(2):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.1)
    """
    for _ in range(4):
        ended = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], timeout=60)
        assert ended.returncode == 0
