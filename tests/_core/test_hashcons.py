"""The hash-cons table from Python; its invariants are tested in Rust, call by call."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytensor_fuse import _core
from pytensor_fuse.graph import GraphError, HashConsTable, IdError, Term, Terms


@st.composite
def rows(draw: st.DrawFn) -> list[tuple[int, list[int], int]]:
    """Nodes over two leaves: op, variables read, number of outputs."""
    nodes = []
    n_variables = 2
    for _ in range(draw(st.integers(0, 12))):
        inputs = draw(st.lists(st.integers(0, n_variables - 1), max_size=3))
        n_outputs = draw(st.integers(1, 2))
        nodes.append((draw(st.integers(0, 2)), inputs, n_outputs))
        n_variables += n_outputs
    return nodes


def as_arrays(nodes: list[tuple[int, list[int], int]]) -> dict[str, np.ndarray]:
    def offsets(lengths: list[int]) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(lengths)]).astype("uint32")

    inputs = [variable for _, row, _ in nodes for variable in row]
    return {
        "node_ops": np.array([op for op, _, _ in nodes], dtype="uint32"),
        "input_offsets": offsets([len(row) for _, row, _ in nodes]),
        "inputs": np.array(inputs, dtype="uint32"),
        "type_offsets": offsets([n for _, _, n in nodes]),
        "output_types": np.zeros(sum(n for _, _, n in nodes), dtype="uint32"),
    }


def written_out(nodes: list[tuple[int, list[int], int]]) -> list[str]:
    """What each output of each node is, in full: equal exactly for equal structures."""
    variables = ["x", "y"]
    for op, inputs, n_outputs in nodes:
        applied = f"op{op}({','.join(variables[i] for i in inputs)})/{n_outputs}"
        variables += [f"{applied}.{i}" for i in range(n_outputs)]
    return variables[2:]


class Ground:
    """A table with three ops, a type and two inputs."""

    def __init__(self) -> None:
        self.table = HashConsTable()
        self.double = self.table.compound(b"float64")
        self.ops = [self.table.compound(b"op", [self.table.compound(bytes([i]))]) for i in range(3)]
        self.leaves = [self.table.input(i, self.double) for i in range(2)]

    def intern(self, nodes: list[tuple[int, list[int], int]]) -> Terms:
        return self.table.intern(
            leaves=self.leaves, ops=self.ops, types=[self.double], **as_arrays(nodes)
        )


@given(rows(), rows())
def test_equal_ids_mean_equal_structures(first, second):
    ground = Ground()
    size = len(ground.table)
    texts = written_out(first) + written_out(second)
    interned = [ground.intern(first), ground.intern(second)]
    ids = np.concatenate([terms.ids for terms in interned])
    ground.table.check()
    assert len(set(zip(ids.tolist(), texts, strict=True))) == len(set(texts)) == len(set(ids))
    digests = [ground.table.digest(int(i)) for i in ids]
    assert len(set(digests)) == len(set(texts))
    assert [term.digest for terms in interned for term in terms] == digests
    ground.table.check()
    del interned
    assert len(ground.table) == size
    other = Ground()
    again = other.intern(first)
    assert [term.digest for term in again] == digests[: len(again)]


def test_terms_are_given_back_when_their_objects_go():
    table = HashConsTable()
    double = table.compound(b"float64")
    opaque = table.opaque()
    graph = table.graph(
        [table.input(0, double)],
        [table.apply(opaque, [double, double], [table.input(0, double)])],
    )
    assert table.stats() == {"live": 5, "applies": 1, "free": 0, "peak": 5} | {
        "bytes": table.stats()["bytes"]
    }
    assert (graph.digest, graph.has_digest) == (None, False)
    assert (opaque.digest, opaque.has_digest) == (None, False)
    assert double.has_digest
    assert double.digest is not None
    del graph, opaque, double
    gc.collect()
    assert len(table) == 0
    table.check()


def test_terms_compare_by_what_they_are():
    table, other = HashConsTable(), HashConsTable()
    assert table.compound(b"a") == table.compound(b"a")
    assert len({table.compound(b"a"), table.compound(b"a"), table.compound(b"b")}) == 2
    assert table.compound(b"a") != table.compound(b"b")
    assert table.compound(b"a") != other.compound(b"a")
    assert table.compound(b"a") != b"a"
    assert table.compound(b"a").digest == other.compound(b"a").digest
    assert table.opaque() != table.opaque()
    one = table.apply(table.compound(b"op"), [table.compound(b"type")], [])
    assert table.output(one, 0) == one


def test_bad_arguments_are_named():
    ground = Ground()
    table = ground.table
    op, double = ground.ops[0], ground.double
    with pytest.raises(ValueError, match="another hash-cons table"):
        HashConsTable().apply(op, [double], [])
    with pytest.raises(GraphError, match="has no outputs"):
        table.apply(op, [], [])
    with pytest.raises(GraphError, match=f"term {op.id} is not an apply node"):
        table.output(op, 0)
    with pytest.raises(IdError, match=r"output 2 is outside 0\.\.2"):
        table.output(table.apply(op, [double, double], []), 2)
    with pytest.raises(GraphError, match="is not input 0"):
        table.graph([ground.leaves[1]], [])
    with pytest.raises(IdError, match=r"input 2 is outside 0\.\.2"):
        ground.intern([(0, [2], 1)])
    with pytest.raises(IdError, match=r"op 3 is outside 0\.\.3"):
        ground.intern([(3, [], 1)])
    with pytest.raises(IdError, match="no term 1000000") as error:
        table.digest(1_000_000)
    assert (error.value.id, error.value.kind) == (1_000_000, "no-term")
    with pytest.raises(TypeError):
        table.compound("text")  # type: ignore[arg-type]
    terms = ground.intern([(0, [0, 1], 1)])
    assert terms[-1] == terms[0]
    for index in (1, -2, -sys.maxsize - 1):
        with pytest.raises(IndexError, match=f"there are 1 terms, no term {index}"):
            terms[index]
    del terms
    rows = as_arrays([(0, [0], 1)])
    known = {"leaves": ground.leaves, "ops": [op], "types": [double]}
    for what, bad, error, message in [
        ("leaves", [0.5], TypeError, "integers"),
        ("ops", [op.id, -1], IdError, "ops -1"),
        ("types", [2**62], IdError, f"no term {2**62}"),
        ("types", HashConsTable().symbols([b"a"]), ValueError, "another hash-cons table"),
        ("leaves", [HashConsTable().opaque()], ValueError, "another hash-cons table"),
        ("leaves", [op, 1], TypeError, "Term"),
    ]:
        with pytest.raises(error, match=message):
            table.intern(**known | {what: bad}, **rows)
    table.check()


def test_nobody_gives_up_what_others_hold():
    # Whoever knew the number of a term could once release it for its owner; the next one in its
    # place was then equal to it.
    table = HashConsTable()
    assert not hasattr(table, "release")
    victim = table.compound(b"victim")
    number, digest = victim.id, victim.digest
    again = table.symbols([b"victim", b"victim"])
    assert again.ids.tolist() == [number, number]
    again.ids[:] = 0
    del again
    attacker = table.compound(b"attacker")
    assert (victim.id, victim.digest) == (number, digest)
    assert victim != attacker
    assert len(table) == 2
    table.check()


def test_an_id_is_that_of_one_term_for_good():
    ground = Ground()
    table, rows = ground.table, as_arrays([(0, [0, 1], 1)])
    known = {"leaves": ground.leaves, "ops": ground.ops, "types": [ground.double]}
    interned = table.intern(**known, **rows)
    (stale,) = interned.ids.tolist()
    assert table.digest(stale) == interned[0].digest
    size = len(table)
    del interned
    assert len(table) == size - 1
    # The slot is used again, by an equal term and by another.
    for nodes in ([(0, [0, 1], 1)], [(1, [0, 1], 1)]):
        new = ground.intern(nodes)
        assert len(table) == size
        assert new.ids[0] != stale
        with pytest.raises(IdError, match=f"no term {stale}") as error:
            table.digest(stale)
        assert (error.value.kind, error.value.id) == ("no-term", stale)
        for what in known:
            with pytest.raises(IdError, match=f"no term {stale}"):
                table.intern(**known | {what: [stale, stale, stale]}, **rows)
        del new
    # Ids of terms that are held are as good as the objects.
    ids = {what: [term.id for term in terms] for what, terms in known.items()}
    assert table.intern(**ids, **rows)[0] == table.intern(**known, **rows)[0]
    table.check()


def test_a_term_of_many_outlives_them():
    table = HashConsTable()
    symbols = table.symbols([b"a", b"b"])
    first = symbols[0]
    del symbols
    assert len(table) == 1
    assert first == table.compound(b"a")
    assert [*table.symbols([])] == []


def test_digests_are_made_when_they_are_asked_for():
    ground = Ground()
    n_nodes = 200_000
    rows = {
        "node_ops": np.zeros(n_nodes, "uint32"),
        "input_offsets": np.arange(n_nodes + 1, dtype="uint32"),
        "inputs": np.concatenate([[0], np.arange(2, n_nodes + 1, dtype="uint32")]),
        "type_offsets": np.arange(n_nodes + 1, dtype="uint32"),
        "output_types": np.zeros(n_nodes, "uint32"),
    }
    known = {"leaves": ground.leaves, "ops": ground.ops, "types": [ground.double]}
    terms = ground.table.intern(**known, **rows)
    last = terms[n_nodes - 1]
    # From the bottom or from the top, at once or after others: the digests are the same.
    digests = [terms[i].digest for i in (0, 1, n_nodes // 2, n_nodes - 1)]
    assert len(set(digests)) == 4
    ground.table.check()
    other = Ground()
    known = {"leaves": other.leaves, "ops": other.ops, "types": [other.double]}
    assert other.table.intern(**known, **rows)[n_nodes - 1].digest == digests[-1] == last.digest


def test_garbage_may_be_collected_while_an_error_is_made():
    # A Term in the garbage is given back to the table, which must not be locked then.
    table = HashConsTable()
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(300):
            cycle: list[object] = [table.opaque()]
            cycle.append(cycle)
            del cycle
            with pytest.raises(IdError):
                table.digest(10**7)
            table.symbols([b"a", b"b"])
    finally:
        gc.set_threshold(*threshold)


def test_threads_share_a_table():
    table = HashConsTable()
    failures: list[BaseException] = []
    kept: list[Term] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        terms: list[Term] = []
        try:
            for _ in range(3_000):
                if terms and rng.random() < 0.45:
                    terms.pop(rng.randrange(len(terms)))
                    continue
                children = rng.sample(terms, min(len(terms), rng.randrange(3)))
                terms.append(table.compound(bytes([rng.randrange(4)]), children))
                if rng.random() < 0.01:
                    table.check()
            # Built from scratch by each thread.
            top = table.compound(b"bottom")
            for _ in range(100):
                top = table.compound(b"up", [top])
            kept.append(top)
        except BaseException as error:  # A failure in a thread is the test's.
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(kept) == 4
    assert len(set(kept)) == 1
    table.check()
    kept.clear()
    gc.collect()
    assert len(table) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_can_use_a_table_that_threads_were_using():
    ground = Ground()
    ground.table.check()
    os.register_at_fork(
        before=ground.table.before_fork,
        after_in_parent=ground.table.after_fork,
        after_in_child=ground.table.after_fork,
    )
    done = threading.Event()
    nodes = [(i % 3, [i, i + 1], 1) for i in range(3_000)]

    def work() -> None:
        while not done.is_set():
            ground.intern(nodes)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                # An alarm ends a child that waits for a lock for good.
                signal.alarm(200)
                ground.intern(nodes)
                ground.table.check()
                os._exit(0)
            _, status = os.waitpid(child, 0)
            assert status == 0
    finally:
        done.set()
        for thread in threads:
            thread.join()
    ground.table.check()


def test_a_flat_graph_is_checked():
    with pytest.raises(GraphError, match="node 0 has no outputs"):
        _core.FlatGraph([0], 0, [(0, [0], [])], [1])
    with pytest.raises(IdError, match=r"input 1 is outside 0\.\.1"):
        _core.FlatGraph([0], 0, [(0, [1], [0])], [1])
    table = HashConsTable()
    good, bad = (_core.FlatGraph([0], 1, [(0, [0, 1], [0])], [i]) for i in (2, 9))
    op, double = table.compound(b"op"), table.compound(b"float64")
    for flat, ops, types, constants, message in [
        (bad, [op], [double], [double], r"output 9 is outside 0\.\.3"),
        (good, [], [double], [double], r"op 0 is outside 0\.\.0"),
        (good, [op], [], [double], r"type 0 is outside 0\.\.0"),
        (good, [op], [double], [], "constants has 0 entries but the graph has 1"),
    ]:
        with pytest.raises(GraphError, match=message):
            flat.intern(table, ops, types, constants, True)
        assert len(table) == 2
    flat = _core.FlatGraph([0], 1, [(0, [0, 1], [0]), (0, [0, 1], [0])], [2, 3])
    folded_term, folded = flat.intern(table, [op], [double], [table.compound(b"1")], True)
    assert (len(folded), folded.parts()[3]) == (1, [2, 2])
    apart_term, apart = flat.intern(table, [op], [double], [table.compound(b"1")], False)
    assert (len(apart), apart.parts()) == (2, flat.parts())
    assert folded_term != apart_term
    again, _ = folded.intern(table, [op], [double], [table.compound(b"1")], True)
    assert again == folded_term
