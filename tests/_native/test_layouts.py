"""Arguments of any layout, aliased arguments, and shared variables, against the Python linker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.io import In, Out
from pytensor.compile.mode import Mode

from support.native.functions import native_function
from support.native.graphs.steps import build
from support.native.graphs.writing import Program, programs
from support.native.lowering import require_same
from support.switching import switched

if TYPE_CHECKING:
    from collections.abc import Callable


def python_function(*args: Any, **kwargs: Any) -> Any:
    """Return a function by the Python linker, without machine code."""
    with switched(native=False):
        return pytensor.function(*args, mode=Mode("py", "fast_run"), **kwargs)


def both(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
    return native_function(*args, **kwargs), python_function(*args, **kwargs)


# Layouts


def fortran(x: np.ndarray) -> np.ndarray:
    return np.array(x, order="F")


def strided(x: np.ndarray) -> np.ndarray:
    whole = np.full([2 * length + 1 for length in x.shape], 7).astype(x.dtype)
    view = whole[(*[slice(1, 2 * length + 1, 2) for length in x.shape], ...)]
    view[...] = x
    return view


def negative(x: np.ndarray) -> np.ndarray:
    backwards = (*[slice(None, None, -1)] * x.ndim, ...)
    return np.array(x[backwards], order="C")[backwards]


def broadcast(x: np.ndarray) -> np.ndarray:
    """Repeat the first element; the numbers differ from those of the argument."""
    return np.broadcast_to(x.ravel()[:1].reshape(()) if x.size else x, x.shape)


def unaligned(x: np.ndarray) -> np.ndarray:
    raw = np.zeros(x.nbytes + 1, dtype="uint8")
    view = raw[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    return view


def read_only(x: np.ndarray) -> np.ndarray:
    out = x.copy()
    out.flags.writeable = False
    return out


def column_of_many(x: np.ndarray) -> np.ndarray:
    whole = np.zeros((*x.shape, 3), dtype=x.dtype)
    whole[..., 1] = x
    return whole[..., 1]


ALIGNED: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    *(np.array, fortran, strided, negative, broadcast, read_only, column_of_many),
)
# PyTensor accepts them if it trusts its inputs.
LAYOUTS = (*ALIGNED, unaligned)


def swapped(x: np.ndarray) -> np.ndarray:
    return x.astype(x.dtype.newbyteorder("S"))


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape)


def require_results(ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    for at, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert isinstance(one, np.ndarray)
        require_same(one, np.asarray(other), f"output {at}")


SHAPES = ((3, 4), (4, 1), (1, 1), (0, 4), (3, 0), (17, 9))


def views_and_sums(x: Any, y: Any, s: Any) -> list[Any]:
    return [x * y + s, x.T, x[::-1, 1:], pt.max(x + 0.5, axis=1), y[::2], s * 2, x.reshape((-1,))]


@pytest.fixture(scope="module")
def general() -> tuple[Any, Any]:
    x, y, s = pt.matrix("x"), pt.matrix("y"), pt.scalar("s")
    return both([x, y, s], [*[*views_and_sums(x, y, s)][:3], y[::2], s * 2, x.reshape((-1,))])


@pytest.mark.parametrize("layout", [*LAYOUTS, swapped], ids=lambda one: one.__name__)
@pytest.mark.parametrize("trusts", [False, True], ids=["filtered", "trusted"])
def test_layouts(general: tuple[Any, Any], layout: Any, trusts: bool) -> None:
    if trusts and layout is swapped:
        pytest.skip("whoever says that dtypes are right must say the truth")
    if not trusts and layout is unaligned:
        pytest.skip("PyTensor refuses them")
    for shape in SHAPES:
        given = [layout(numbers(*shape)), layout(numbers(*shape) + 1), layout(np.array(0.5))]
        before = [one.copy() for one in given]
        ours, theirs = general
        ours.trust_input = theirs.trust_input = trusts
        try:
            results = ours(*given)
            require_results(results, theirs(*given))
        finally:
            ours.trust_input = theirs.trust_input = False
        for one, kept in zip(given, before, strict=True):
            assert np.array_equal(one, kept)
            assert not any(np.may_share_memory(one, result) for result in results)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layouts_of_known_shapes(shape: tuple[int, int]) -> None:
    x = pt.tensor("x", dtype="float64", shape=shape)
    y, s = pt.tensor("y", dtype="float64", shape=shape), pt.scalar("s")
    outs = views_and_sums(x, y, s)
    if not shape[1]:
        # NumPy has no largest element of an empty array.
        del outs[3]
    ours, theirs = both([x, y, s], outs)
    for layout in ALIGNED:
        given = [layout(numbers(*shape)), layout(numbers(*shape) - 1), layout(np.array(-2.0))]
        require_results(ours(*given), theirs(*given))
    wrong = np.zeros((shape[0] + 1, shape[1]))
    for function in (ours, theirs):
        with pytest.raises(TypeError):
            function(wrong, wrong, 1.0)


@given(programs(most_steps=8, may_fail=False), st.lists(st.sampled_from(ALIGNED), min_size=8))
def test_layouts_of_inputs_of_random_graphs(
    program: Program, layouts: list[Callable[[np.ndarray], np.ndarray]]
) -> None:
    case = build(program)
    with switched(cache=False):
        function = pytensor.function(
            case.inputs,
            case.outputs,
            mode=Mode("native", None),
            on_unused_input="ignore",
        )
    chosen = [one if one is not broadcast else np.array for one in layouts]
    given = [chosen[at % 8](value) for at, value in enumerate(case.values)]
    require_results(function(*given), case.expected)
    for one, value in zip(given, case.values, strict=True):
        require_same(np.asarray(one), value, "input")


# Other arguments


@pytest.mark.parametrize(
    "number", [2, 2.5, True, np.float64(2.5), np.float32(0.5), np.int8(3), np.array(2.5)], ids=repr
)
def test_numbers_that_are_no_arrays(number: Any) -> None:
    x, n = pt.dscalar("x"), pt.dvector("n")
    ours, theirs = both([x, n], [x + 1, x * n, x])
    results = ours(number, [1, 2, 3])
    require_results(results, theirs(number, [1, 2, 3]))
    assert all(type(one) is np.ndarray for one in results)


@pytest.mark.parametrize("value", [[1.0, 2], (1, 2), [], range(3), np.arange(3, dtype="int8")])
def test_sequences(value: Any) -> None:
    x = pt.dvector("x")
    ours, theirs = both([x], [x + 1, x.sum()])
    require_results(ours(value), theirs(value))


@pytest.mark.parametrize(
    "value",
    [
        np.arange(3) + 0.5,
        [0.5],
        np.zeros((2, 2), "int32"),
        "ab",
        None,
        1.5,
        np.zeros(2, "uint32"),
        unaligned(np.zeros(2, "int32")),
    ],
    ids=repr,
)
def test_what_is_refused(value: Any) -> None:
    x = pt.ivector("x")
    ours, theirs = both([x], x + 1)
    failures = []
    for function in (ours, theirs):
        with pytest.raises((TypeError, ValueError)) as caught:
            function(value)
        failures.append((caught.type, str(caught.value)))
    assert failures[0] == failures[1]


# Arguments that are views of each other


def test_inputs_that_are_views_of_each_other() -> None:
    x, y, z = pt.matrices("xyz")
    ours, theirs = both([x, y, z], [x + y * z, x - y, z[0]])
    array = numbers(4, 4)
    for views in (
        (array, array, array),
        (array, array.T, array[::-1]),
        (array, array[:, ::-1], array),
    ):
        kept = array.copy()
        require_results(ours(*views), theirs(*views))
        assert np.array_equal(array, kept)


@pytest.mark.parametrize("mutable", [(True, False), (False, True), (True, True)], ids=str)
def test_mutable_inputs_that_are_views_of_each_other(mutable: tuple[bool, bool]) -> None:
    x, y = pt.vectors("xy")
    given = [In(x, mutable=mutable[0]), In(y, mutable=mutable[1])]
    ours, theirs = both(
        given, [pt.set_subtensor(x[:2], 9.0) + 1, y * 2, x * y], accept_inplace=True
    )
    array = numbers(6)
    for views in (lambda a: (a[:4], a[2:]), lambda a: (a, a), lambda a: (a[::-1], a)):
        # The expected results are those of separate arrays: the Python linker is wrong if only one
        # of the arguments may be overwritten.
        apart = [one.copy() for one in views(array)]
        require_results(ours(*views(array.copy())), theirs(*apart))


@pytest.mark.parametrize("layout", ALIGNED, ids=lambda one: one.__name__)
def test_mutable_inputs(layout: Any) -> None:
    x, y = pt.vectors("xy")
    out = pt.inc_subtensor(x[1:3], 5.0)
    ours, theirs = both([In(x, mutable=True), y], [out, y + 1])
    given = [layout(numbers(5)), layout(numbers(5))]
    # NumPy does not write to an array whose elements share memory.
    expected = theirs(np.array(given[0]), given[1])
    before = [one.copy() for one in given]
    try:
        results = ours(*given)
    except ValueError:
        assert not given[0].flags.writeable
    else:
        require_results(results, expected)
    if not given[0].flags.writeable:
        assert np.array_equal(given[0], before[0])
    assert np.array_equal(given[1], before[1])


def test_results_of_before_stay_as_they_are() -> None:
    x = pt.vector("x")
    ours = native_function([x], [x + 1, x.sum(), Out(x * 2, borrow=True)])
    first = ours(np.arange(4.0))
    kept = [one.copy() for one in first[:2]]
    ours(np.arange(4.0) + 10)
    require_results(first[:2], kept)


# Outputs


@pytest.mark.parametrize("borrow", [False, True])
def test_outputs_that_are_inputs_or_views_of_them(borrow: bool) -> None:
    x, s = pt.matrix("x"), pt.scalar("s")
    outs = [Out(one, borrow=borrow) for one in (x, x.T, x[1:], x, s, x * 1)]
    ours, theirs = both([x, s], outs)
    value, number = numbers(3, 3), np.array(2.0)
    results = ours(value, number)
    require_results(results, theirs(value, number))
    if not borrow:
        assert not any(np.shares_memory(one, value) for one in results)
        assert not np.shares_memory(results[4], number)
        results[0][...] = 7
        require_results(results[1:], theirs(value, number)[1:])


def test_outputs_that_are_one() -> None:
    x = pt.vector("x")
    y = x + 1
    ours, theirs = both([x], [y, y, y[:2], Out(y, borrow=True)])
    require_results(ours(numbers(3)), theirs(numbers(3)))


def test_outputs_that_are_constants() -> None:
    x = pt.vector("x")
    constant = pt.constant(np.arange(3.0))
    ours, theirs = both([x], [constant, constant + 0 * 1, x], on_unused_input="ignore")
    results = ours(numbers(2))
    require_results(results, theirs(numbers(2)))
    results[0][...] = 9
    require_results(ours(numbers(2)), theirs(numbers(2)))


# Shared variables


@pytest.mark.parametrize("layout", ALIGNED, ids=lambda one: one.__name__)
@pytest.mark.parametrize("borrow", [False, True])
def test_shared_values(layout: Any, borrow: bool) -> None:
    x = pt.vector("x")
    states = []
    for make in (native_function, python_function):
        value = layout(numbers(4, 3))
        kept = value.copy()
        shared = pytensor.shared(value, borrow=borrow)
        function = make([x], [shared + x, shared.sum(axis=0), shared.T])
        before = function(np.ones(3))
        shared.set_value(layout(numbers(5, 3) * 2), borrow=borrow)
        states.append([*before, *function(np.arange(3.0)), shared.get_value()])
        assert np.array_equal(value, kept)
    require_near(*states)


def require_near(ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)


@pytest.mark.parametrize("layout", ALIGNED, ids=lambda one: one.__name__)
def test_updates(layout: Any) -> None:
    i = pt.lscalar("i")
    states = []
    for make in (native_function, python_function):
        table = pytensor.shared(np.array(layout(numbers(4, 3)), order="K"))
        count = pytensor.shared(np.array(0.0))
        updates = {table: pt.inc_subtensor(table[i], count + 1), count: count + 1}
        function = make([i], [table, table.sum(), count], updates=updates)
        seen = []
        for at in (0, 3, 1, -1):
            seen += function(at)
        # The results show the table at the time of the call.
        states.append([*[one.copy() for one in seen], table.get_value(), count.get_value()])
    require_near(*states)


def test_updates_that_swap() -> None:
    states = []
    for make in (native_function, python_function):
        a, b = pytensor.shared(numbers(3)), pytensor.shared(numbers(3) + 5)
        function = make([], [a + b, a], updates={a: b, b: a})
        states.append([*function(), *function(), *function(), a.get_value(), b.get_value()])
    require_near(*states)


def test_updates_of_values_that_somebody_holds() -> None:
    states = []
    for make in (native_function, python_function):
        value = numbers(4)
        shared = pytensor.shared(value, borrow=True)
        held = shared.get_value()
        function = make([], shared * 2, updates={shared: pt.set_subtensor(shared[0], 3.0)})
        results = [function(), function()]
        shared.set_value(strided(numbers(4)), borrow=True)
        results.append(function())
        states.append([*results, held, shared.get_value()])
    require_near(*states)


def test_update_by_an_input_and_its_result() -> None:
    x = pt.vector("x")
    states = []
    for make in (native_function, python_function):
        shared = pytensor.shared(numbers(3))
        function = make([x], [shared, x], updates={shared: x})
        value = np.arange(3.0)
        results = function(value)
        value[...] = -1
        results += function(np.ones(3))
        states.append([*results, shared.get_value()])
    require_near(*states)
