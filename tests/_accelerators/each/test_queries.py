"""The passes of a mode that are given again are as those that PyTensor makes anew."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import JAX, NUMBA, Mode, optdb
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import SequentialGraphRewriter, node_rewriter
from pytensor.graph.rewriting.db import LocalGroupDB, RewriteDatabaseQuery

from pytensor_fuse._accelerators.queries import drop_in as queries
from support.switching import switched

MODES = {
    "fast_run": Mode(linker="py", optimizer="fast_run"),
    "fast_compile": Mode(linker="py", optimizer="fast_compile"),
    "numba": NUMBA,
    "jax": JAX,
    "less": Mode(linker="py", optimizer="fast_run").excluding("fusion", "inplace"),
}


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    queries._contents = None
    # What the first compile imports registers rewriters.
    import pytensor.sparse  # noqa: F401

    with switched(accelerators=["queries", "rewriter_loops"]):
        yield


def parts(rewriter: Any, registered: Any) -> Any:
    """All that a pass is made of, down to what is registered."""
    if id(rewriter) in registered or not hasattr(rewriter, "__dict__"):
        return rewriter
    found: list[Any] = [type(rewriter)]
    for name, value in sorted(vars(rewriter).items()):
        if name.startswith("_pytensor_fuse") or name in ("add_tracker", "get_trackers"):
            continue
        if name == "_cached_composed_mro":
            continue
        found.append(name)
        if isinstance(value, list | tuple):
            found.append([parts(one, registered) for one in value])
        elif name in ("node_tracker", "tracker", "node_rewriter"):
            found.append(parts(value, registered))
        elif isinstance(value, dict):
            found.append([(key, copy.copy(inner)) for key, inner in value.items()])
        else:
            found.append(value)
    return found


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_the_same_passes(mode: Mode) -> None:
    query = mode._optimizer
    with switched(accelerators=["rewriter_loops"]):
        expected = optdb.query(query)
    answers = [optdb.query(query) for _ in range(3)]
    contents = queries._contents
    assert contents is not None
    assert [known is not None for known in contents.answers.values()] == [True]
    for answer in answers:
        assert parts(answer, contents.registered) == parts(expected, contents.registered)
        assert answer.name == expected.name
    assert answers[0] is not answers[1]
    assert answers[0].data is not answers[1].data


def test_what_is_done_to_one_is_not_done_to_the_next() -> None:
    query = MODES["fast_run"]._optimizer
    first = optdb.query(query)
    n_passes = len(first)
    before = equilibrium(first)
    n_rewriters = len(list(before.get_node_rewriters()))

    @node_rewriter([pt.exp])
    def to_sin(fgraph: Any, node: Any) -> Any:
        return [pt.sin(node.inputs[0])]

    second, third = optdb.query(query), optdb.query(query)
    second.pop()
    equilibrium(second).node_tracker.add_tracker(to_sin)
    equilibrium(second).max_use_ratio = 1
    fourth = optdb.query(query)
    for other in (first, third, fourth):
        assert len(other) == n_passes
        assert len(list(equilibrium(other).get_node_rewriters())) == n_rewriters
        assert to_sin not in equilibrium(other).node_tracker.get_trackers(pt.exp)
        assert equilibrium(other).max_use_ratio == before.max_use_ratio
    assert equilibrium(second).node_tracker.get_trackers(pt.exp).count(to_sin) == 1
    assert len(list(equilibrium(second).get_node_rewriters())) == n_rewriters + 1
    x = pt.vector("x")
    for rewriter, op in ((equilibrium(second), pt.sin), (equilibrium(fourth), pt.exp)):
        graph = FunctionGraph([x], [pt.exp(x)])
        rewriter.max_use_ratio = 10
        rewriter.rewrite(graph)
        assert graph.outputs[0].owner.op == op


def equilibrium(passes: Any) -> Any:
    (found,) = [one for one in passes if one.name == "canonicalize"]
    return found


def test_registrations_are_seen() -> None:
    mode = MODES["fast_run"]
    x = pt.vector("x")

    def ops() -> list[str]:
        f = pytensor.function([x], pt.exp(x), mode=mode)
        return [str(node.op) for node in f.maker.fgraph.toposort()]

    @node_rewriter([pt.exp])
    def to_sin(fgraph: Any, node: Any) -> Any:
        return [pt.sin(node.inputs[0])]

    assert ops() == ops() == ["Exp"]
    canonicalize = optdb["canonicalize"]
    canonicalize.register("to_sin_for_a_test", to_sin, "fast_run")
    try:
        assert ops() == ops() == ["Sin"]
        canonicalize.remove_tags("to_sin_for_a_test", "fast_run", "canonicalize")
        assert ops() == ops() == ["Exp"]
    finally:
        vars(canonicalize)["__db__"]["to_sin_for_a_test"].pop()
        del vars(canonicalize)["__db__"]["to_sin_for_a_test"]
        canonicalize._names.discard("to_sin_for_a_test")
        vars(canonicalize)["__db__"]["FromFunctionNodeRewriter"].discard(to_sin)
    assert ops() == ["Exp"]


def test_registrations_with_a_group_within_are_seen() -> None:
    group = next(
        value
        for database in vars(optdb)["__db__"]["useless"]
        for value in vars(database).values()
        if isinstance(value, LocalGroupDB)
    )

    @node_rewriter([pt.exp])
    def never(fgraph: Any, node: Any) -> Any:
        return None

    query = MODES["fast_run"]._optimizer
    optdb.query(query)
    contents = queries._contents
    assert contents is not None
    assert contents.are_these()
    group.register("never_for_a_test", never, "fast_run")
    try:
        assert not contents.are_these()
        (useless,) = [one for one in optdb.query(query) if one.name == "useless"]
        assert never in useless.node_rewriter.rewrites
    finally:
        group.remove_tags("never_for_a_test", "fast_run")
        tags = vars(group)["__db__"]
        for tag in [tag for tag, found in tags.items() if never in found]:
            tags[tag].discard(never)
        group._names.discard("never_for_a_test")
        del group.__position__["never_for_a_test"]


def test_settings_are_seen() -> None:
    query = MODES["fast_run"]._optimizer
    assert equilibrium(optdb.query(query)).max_use_ratio != 3
    with pytensor.config.change_flags(optdb__max_use_ratio=3):
        assert equilibrium(optdb.query(query)).max_use_ratio == 3
    assert equilibrium(optdb.query(query)).max_use_ratio != 3


def test_other_queries_are_pytensors() -> None:
    plain = RewriteDatabaseQuery(include=["fast_run"])
    with switched(accelerators=False):
        expected = [one.name for one in optdb.query("+fast_run", "-inplace")]
        expected_cut = [one.name for one in optdb.query("+fast_run", position_cutoff=1.0)]
    assert [one.name for one in optdb.query("+fast_run", "-inplace")] == expected
    assert [one.name for one in optdb.query("+fast_run", position_cutoff=1.0)] == expected_cut
    with pytest.raises(TypeError, match="no other arguments"):
        optdb.query(plain, "+fast_run")
    extra = plain.register((SequentialGraphRewriter(), 0.5))
    assert len(optdb.query(extra)) == len(optdb.query(plain)) + 1
    within = RewriteDatabaseQuery(include=["fast_run"], subquery={"canonicalize": plain})
    assert len(optdb.query(within)) == len(optdb.query(plain))
    contents = queries._contents
    assert contents is not None
    assert len(contents.answers) == 1


def test_ops_are_let_go() -> None:
    """A tracker that is shared does not keep the ops that it has been asked of."""
    query = MODES["fast_run"]._optimizer
    tracker = equilibrium(optdb.query(query)).node_tracker
    x = pt.vector("x", shape=(5,))
    for n in range(2 * queries._MANY_OPS):
        tracker.get_trackers(pt.shape_padleft(x, n % 3 + 1).owner.op)
        tracker.get_trackers(pytensor.tensor.basic.Alloc())
        tracker.get_trackers(pytensor.compile.ops.FromFunctionOp(print, [], [], None))
    assert tracker.get_trackers.cache_info().currsize <= 4 * queries._MANY_OPS
    tracker = equilibrium(optdb.query(query)).node_tracker
    assert tracker.get_trackers.cache_info().currsize <= queries._MANY_OPS


def test_answers_are_copied() -> None:
    answer = optdb.query(MODES["fast_run"]._optimizer)
    x = pt.vector("x")
    graph = FunctionGraph([x], [pt.exp(x) + 0])
    answer.rewrite(graph)
    tracker = copy.deepcopy(equilibrium(answer).node_tracker.tracked_types)
    assert tracker.keys() == equilibrium(answer).node_tracker.tracked_types.keys()
    other = FunctionGraph([x], [pt.exp(x) + 0])
    MODES["fast_run"].optimizer.rewrite(other)
    assert [str(n.op) for n in graph.toposort()] == [str(n.op) for n in other.toposort()]
    assert [str(n.op) for n in pickle.loads(pickle.dumps(graph)).toposort()] == [
        str(n.op) for n in graph.toposort()
    ]
