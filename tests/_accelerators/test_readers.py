"""Lists of who reads a variable: what is found in them and taken out is what PyTensor would."""

from __future__ import annotations

from typing import Any

import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.shape import Shape_i

from pytensor_fuse._core import remove_reader
from support.switching import switched

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


@pytest.mark.parametrize("accelerators", [False, ["graph_edits"], True])
def test_a_client_that_is_not_there_is_none(accelerators: Any) -> None:
    with switched(accelerators=accelerators):
        outputs = [pt.exp(x) + i for i in range(8)]
        fgraph = FunctionGraph([x], outputs, clone=False)
        common = outputs[0].owner.inputs[0]
        # PyTensor goes on to what nothing reads.
        fgraph.remove_client(common, (outputs[1].owner, 7))
        assert len(fgraph.clients[common]) == 1
