"""Lists of who reads a variable: what is found in them and taken out is what PyTensor would."""

from __future__ import annotations

from typing import Any

import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.rewriting.shape import ShapeFeature
from pytensor.tensor.shape import Shape_i

import pytensor_fuse
from pytensor_fuse._core import readers_of_class, remove_reader

x = pt.vector("x")
NODES = [pt.exp(x).owner, pt.sin(x).owner, Shape_i(0)(x).owner, pt.shape(x).owner]
pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=12)


class Equal:
    """Says of itself that it is what it is compared with, as no node of PyTensor's does."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


@given(readers=pairs, pair=st.tuples(st.integers(0, 3), st.integers(0, 2)))
def test_the_first_pair_is_removed(readers: list[tuple[int, int]], pair: tuple[int, int]) -> None:
    ours: list[Any] = [(NODES[node], position) for node, position in readers]
    expected = list(ours)
    node, position = NODES[pair[0]], pair[1]
    is_there = (node, position) in expected
    if is_there:
        expected.remove((node, position))
    assert remove_reader(ours, node, position) is is_there
    assert ours == expected


@pytest.mark.parametrize("other", [(Equal(), 0), ["no pair"], (1, 2, 3), None])
def test_nothing_is_removed_behind_what_is_not_known(other: Any) -> None:
    readers: Any = [other, (NODES[0], 0)]
    assert not remove_reader(readers, NODES[0], 0)
    assert len(readers) == 2


def test_large_positions() -> None:
    # Which are not the same object, where they are equal.
    readers: Any = [(NODES[0], int(f"{1000 + i}")) for i in range(5)]
    assert remove_reader(readers, NODES[0], int("1003"))
    assert [position for _, position in readers] == [1000, 1001, 1002, 1004]


@given(readers=pairs)
def test_readers_of_a_class(readers: list[tuple[int, int]]) -> None:
    found: Any = [(NODES[node], position) for node, position in readers]
    for class_ in (Shape_i, type(NODES[0].op), object):
        expected = [node for node, _ in found if isinstance(node.op, class_)]
        assert readers_of_class(found, class_) == expected


@pytest.mark.parametrize(("other", "error"), [(("text", 0), AttributeError), (1, TypeError)])
def test_other_things_among_readers(other: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        readers_of_class([(NODES[2], 0), other], Shape_i)


@pytest.mark.parametrize("accelerators", [False, ["graph_edits"], True])
def test_a_client_that_is_not_there_is_none(accelerators: Any) -> None:
    with pytensor_fuse.enabled(accelerators=accelerators):
        outputs = [pt.exp(x) + i for i in range(8)]
        fgraph = FunctionGraph([x], outputs, clone=False)
        common = outputs[0].owner.inputs[0]
        # PyTensor goes on to what nothing reads.
        fgraph.remove_client(common, (outputs[1].owner, 7))
        assert len(fgraph.clients[common]) == 1


needs_3_3 = pytest.mark.skipif(
    not pytensor_fuse.status()["accelerators"].parts["shape_changes"].is_on,
    reason="off in this PyTensor",
)


def changed(accelerators: Any, spoil: Any = None) -> tuple[list[Any], int]:
    """Replace a variable whose shape is asked for; return what is scheduled, and noted as stale."""
    v, w = pt.vectors("v", "w")
    common = pt.exp(v)
    asking = [Shape_i(0)(common) for _ in range(3)]
    outputs = [common + i for i in range(5)] + asking + [pt.sin(common)]
    with pytensor_fuse.enabled(accelerators=accelerators):
        fgraph = FunctionGraph([v, w], outputs, clone=False)
        feature = ShapeFeature()
        fgraph.attach_feature(feature)
        new = pt.cos(w)
        fgraph.import_var(new, reason="x", import_missing=False)
        if spoil is not None:
            fgraph.clients[common].append(spoil)
            with pytest.raises(TypeError):
                feature.on_change_input(fgraph, outputs[0].owner, 0, common, new, "x")
            fgraph.clients[common].pop()
        feature.on_change_input(fgraph, outputs[1].owner, 0, new, new, "nothing")
        fgraph.replace(common, new, reason="x")
    names = {a.owner: number for number, a in enumerate(asking)}
    scheduled = [(names[node], var is new) for node, var in feature.scheduled.items()]
    return scheduled, len(feature._stale)


@needs_3_3
@pytest.mark.parametrize("spoil", [None, 1])
def test_who_asks_for_a_shape_that_changes_is_scheduled(spoil: Any) -> None:
    expected = changed(False, spoil)
    assert changed(["shape_changes"], spoil) == expected
    assert changed(True, spoil) == expected
    assert len(expected[0]) == 3
