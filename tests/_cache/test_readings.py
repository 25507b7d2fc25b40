"""What is read of the data of a constant is noted, and decides whether other data fit."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor import subtensor
from pytensor.tensor.rewriting import elemwise

from _cache.with_data import Y, constant, watched
from pytensor_fuse._cache.data import readings
from pytensor_fuse._cache.data.questions import LONG, answer, known_readers
from pytensor_fuse._cache.data.readings import Readings, large_constants
from pytensor_fuse._cache.data.rewritten import Rewritten
from pytensor_fuse._cache.key.places import Origins
from pytensor_fuse._pytensor.rewriting.constant_reads import watching
from support.switching import switched


def test_rules_are_asked_for_once_of_what_has_been_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def known() -> Any:
        asked.append(1)
        return known_readers()

    monkeypatch.setattr(readings, "known_readers", known)

    def read_often(of: Any) -> None:
        for _ in range(5):
            assert of.data is not None

    watched(read_often, pt.constant(Y))
    # When the watch began, and at the first read.
    assert len(asked) == 2


@pytest.mark.parametrize(
    "read",
    [
        lambda one: one.data,
        lambda one: one.value,
        lambda one: one.signature(),
        lambda one: one.equals(constant()),
        copy.copy,
        copy.deepcopy,
        lambda one: getattr(one, "data"),  # noqa: B009
    ],
)
def test_every_look_is_noted(read: Callable[[Any], object]) -> None:
    assert watched(read, constant())._exact
    # And by nobody but the thread that watches.
    one = constant()

    def elsewhere(_: object) -> None:
        thread = threading.Thread(target=read, args=[one])
        thread.start()
        thread.join()

    assert not watched(elsewhere, one)._exact


@pytest.mark.parametrize("read", [str, repr, lambda one: one.type, lambda one: one.unique_value])
def test_what_decides_nothing_is_not(read: Callable[[Any], object]) -> None:
    assert not watched(read, constant())._exact


def test_what_was_found_out_before_is_found_out_again() -> None:
    one = constant()
    assert one.unique_value is None
    subtensor._is_provably_positive(one)
    noted = watched(lambda one: subtensor._is_provably_positive(one), one)
    assert {name for name, _ in noted._asked} == {
        "whether it is positive",
        "whether it is not negative",
    }
    noted = watched(lambda one: one.unique_value, one)
    assert [name for name, _ in noted._asked] == ["for its only value"]


def test_what_another_thread_finds_out_counts_as_read() -> None:
    for find_out in (lambda one: one.unique_value, subtensor._is_provably_positive):
        one = constant()

        def elsewhere(_: object, find_out: Any = find_out, one: Any = one) -> None:
            thread = threading.Thread(target=find_out, args=[one])
            thread.start()
            thread.join()

        b = pt.scalar("b")
        fgraph = FunctionGraph([b], [one * b], clone=False)
        origins = Origins(fgraph.inputs, fgraph.outputs)
        noted = watched(elsewhere, one)
        assert noted.other_data(*Rewritten.of(fgraph, origins)) is None


def test_questions_have_answers() -> None:
    names = {name for names in known_readers().asking.values() for name in names}
    assert {"for its only value", "whether it is positive", "whether it is zero"} <= names
    matrix = pt.constant(np.eye(4))
    for name in names:
        given = answer(name, matrix)
        assert pickle.loads(pickle.dumps(given)) == given
    assert answer("for its only value", matrix) is None
    assert answer("whether it is zero", matrix) is False
    assert answer("what nobody asks", matrix) is LONG
    assert answer("for its diagonal, if it has no more", matrix) is LONG


def test_constants_are_as_ever() -> None:
    one = constant()
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert other.equals(one)
        np.testing.assert_array_equal(other.data, one.data)
    one.data = Y + 1
    with switched(other_data=False):
        np.testing.assert_array_equal(one.data, Y + 1)
        one.data = Y + 2
        made = pickle.dumps(constant())
    np.testing.assert_array_equal(one.data, Y + 2)
    np.testing.assert_array_equal(pickle.loads(made).data, Y)
    del one.data
    assert not hasattr(one, "data")


@given(
    st.lists(st.sampled_from([(12,), (1,), (4, 3), (1, 3), (4, 1)]), min_size=1, max_size=5),
    st.integers(0, 4),
    st.booleans(),
)
def test_branches_are_folded_as_by_pytensor(
    shapes: list[tuple[int, ...]], twice: int, product: bool
) -> None:
    rng = np.random.default_rng(0)
    n_axes = max(map(len, shapes))
    constants = [
        pt.constant(rng.normal(size=(*[1] * (n_axes - len(shape)), *shape)))
        for shape in shapes
        if len(shape) == n_axes
    ]
    constants.append(constants[twice % len(constants)])
    x = pt.tensor("x", shape=(1,) * n_axes)
    out = (pt.mul if product else pt.add)(x, *constants)
    fgraph = FunctionGraph([x], [out], clone=False)
    rewriter = elemwise.constant_fold_branches_of_add_mul
    origins = Origins(fgraph.inputs, fgraph.outputs)
    with watching(Readings(origins, large_constants(origins))):
        found = rewriter.transform(fgraph, out.owner)
    expected = rewriter.transform(fgraph, out.owner)
    assert bool(found) == bool(expected)
    if found:
        ours, theirs = (FunctionGraph([x], made) for made in (found, expected))
        assert pytensor.graph.basic.equal_computations(
            ours.outputs, theirs.outputs, ours.inputs, theirs.inputs
        )
