"""Promises of PyTensor's functions that machine code keeps."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import resource
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.io import In, Out
from pytensor.raise_op import Assert

from pytensor_fuse._native.linking.thunks import NativeThunk
from support.effort import IS_DEEP
from support.native.functions import native_function, stock_function

VECTOR = np.linspace(-1.0, 2.0, 5)


def both(make):
    """Return the results of `make` as machine code and by Numba."""
    return make(native_function), make(stock_function)


def raised_by(function, *args, **kwargs):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - it is compared
        function(*args, **kwargs)
    return caught.value


def test_updates_change_shared_variables_and_results_are_of_before():
    state = pytensor.shared(np.zeros(3), name="state")
    count = pytensor.shared(0, name="count")
    x = pt.vector("x")
    step = native_function([x], [state.sum()], updates={state: state + x, count: count + 1})
    totals = [float(step(np.ones(3))[0]) for _ in range(3)]
    assert totals == [0.0, 3.0, 6.0]
    np.testing.assert_array_equal(state.get_value(), [3, 3, 3])
    assert int(count.get_value()) == 3
    state.set_value(np.full(3, 10.0))
    assert float(step(np.ones(3))[0]) == 30.0


def test_a_function_of_updates_alone_returns_none_of_them():
    state = pytensor.shared(np.zeros(3), name="state")
    step = native_function([], [], updates={state: pt.exp(state)})
    assert step() == []
    np.testing.assert_array_equal(state.get_value(), np.ones(3))


def test_what_a_shared_variable_gave_out_is_not_written_to():
    state = pytensor.shared(np.zeros(3), name="state")
    step = native_function([], state * 1.0, updates={state: pt.inc_subtensor(state[0], 1.0)})
    copied = state.get_value()
    results = [step().copy() for _ in range(3)]
    np.testing.assert_array_equal(copied, np.zeros(3))
    np.testing.assert_array_equal(np.array(results)[:, 0], [0, 1, 2])


def test_only_mutable_inputs_are_written_to():
    x = pt.vector("x")
    out = pt.set_subtensor(x[1:3], 7.0) * 1.5
    careful = native_function([x], out)
    given = VECTOR.copy()
    wanted = careful(given)
    np.testing.assert_array_equal(given, VECTOR)
    careless = native_function([In(x, mutable=True)], out)
    np.testing.assert_array_equal(careless(given), wanted)


@pytest.mark.parametrize("make", [native_function, stock_function])
def test_elementwise_work_is_done_in_the_place_of_a_mutable_input(make):
    x, y = pt.vectors("xy")
    function = make([In(x, mutable=True), y], [pt.exp(x) * y + 1, x.sum()])
    given, other = VECTOR.copy(), np.arange(5.0)
    wanted = np.exp(VECTOR) * other + 1
    out, total = function(given, other)
    assert np.shares_memory(out, given)
    np.testing.assert_allclose(given, wanted)
    np.testing.assert_allclose(total, VECTOR.sum())
    # A result may be stored in an array that is not contiguous.
    column = np.repeat(VECTOR, 2)[::2]
    out, _ = function(column, other)
    np.testing.assert_allclose(out, wanted)
    # A failed call leaves it unchanged.
    given = VECTOR.copy()
    with pytest.raises(ValueError, match="shape"):
        function(given, np.zeros(4))
    np.testing.assert_array_equal(given, VECTOR)


@pytest.mark.parametrize("make", [native_function, stock_function])
def test_updates_are_made_in_the_place_of_a_shared_variable(make):
    state = pytensor.shared(np.ones(3), name="state")
    step = pt.vector("step")
    function = make([step], [state.sum()], updates={state: state * 0.5 - step})
    inside = state.get_value(borrow=True)
    assert float(function(np.arange(3.0))[0]) == 3
    assert state.get_value(borrow=True) is inside
    np.testing.assert_array_equal(inside, [0.5, -0.5, -1.5])


def test_borrowed_and_other_outputs_are_not_changed_by_the_next_call():
    x = pt.vector("x")
    for borrow in (False, True):
        function = native_function([In(x, borrow=borrow)], Out(x * 2, borrow=borrow))
        first = function(VECTOR)
        second = function(VECTOR + 1)
        np.testing.assert_array_equal(first, VECTOR * 2)
        np.testing.assert_array_equal(second, VECTOR * 2 + 2)


def test_inputs_may_be_views_of_each_other_and_of_results():
    x, y = pt.vectors("xy")
    function = native_function([x, y], [x[::-1] + y, x * y])
    base = np.arange(6.0)
    for one, other in ((base, base), (base[:5], base[1:]), (base[::-1], base)):
        added, product = function(one, other)
        np.testing.assert_array_equal(added, one[::-1] + other)
        np.testing.assert_array_equal(product, one * other)
    again = function(added, added[::-1])[0]
    np.testing.assert_array_equal(again, 2 * added[::-1])


def test_mutable_inputs_that_share_memory():
    def make(function):
        x, y = pt.vectors("xy")
        return function([In(x, mutable=True), In(y, mutable=True)], [x + 1.0, y * 2.0 + x])

    given = np.arange(6.0)
    for function in both(make):
        base = given.copy()
        first, second = function(base[:4], base[2:])
        np.testing.assert_array_equal(first, given[:4] + 1)
        np.testing.assert_array_equal(second, given[2:] * 2 + given[:4])


def test_outputs_that_are_inputs_and_outputs_that_are_twice_there():
    x = pt.vector("x")
    y = pt.exp(x)
    function = native_function([x], [x, y, y, pt.as_tensor(np.ones(2)), x.T])
    same, one, other, constant, transposed = function(VECTOR)
    np.testing.assert_array_equal(same, VECTOR)
    np.testing.assert_array_equal(transposed, VECTOR)
    assert not np.shares_memory(same, VECTOR)
    assert not np.shares_memory(transposed, VECTOR)
    np.testing.assert_array_equal(one, other)
    constant[:] = 5
    np.testing.assert_array_equal(function(VECTOR)[3], [1, 1])


def test_single_outputs_and_unused_inputs():
    x, unused = pt.vectors("x", "unused")
    single = native_function([x, unused], x + 1, on_unused_input="ignore")
    np.testing.assert_array_equal(single(VECTOR, VECTOR[:0]), VECTOR + 1)
    listed = native_function([x], [x + 1])
    assert isinstance(listed(VECTOR), list)


def test_keywords_and_trust():
    x, y = pt.vector("x"), pt.scalar("y")
    function = native_function([x, y], x * y)
    np.testing.assert_array_equal(function(VECTOR, 2.0), VECTOR * 2)
    np.testing.assert_array_equal(function(x=VECTOR, y=4.0), VECTOR * 4)
    np.testing.assert_array_equal(function(VECTOR, y=3.0), VECTOR * 3)
    function.trust_input = True
    np.testing.assert_array_equal(function(VECTOR, np.asarray(5.0)), VECTOR * 5)


def test_what_is_not_garbage_collected_is_as_good():
    x = pt.vector("x")
    linker = pytensor.compile.mode.predefined_linkers["numba"].clone(allow_gc=False)
    mode = pytensor.compile.mode.Mode(linker, pytensor.compile.mode.NUMBA.optimizer)
    function = pytensor.function([x], x * 2, mode=mode)
    assert isinstance(function.vm, NativeThunk)
    first, second = function(VECTOR), function(VECTOR + 1)
    np.testing.assert_array_equal(first, VECTOR * 2)
    np.testing.assert_array_equal(second, VECTOR * 2 + 2)


def test_a_profile_counts_calls():
    x = pt.vector("x")
    function = native_function([x], x * 2, profile=True)
    for _ in range(3):
        function(VECTOR)
    assert function.profile.fct_callcount == 3
    assert function.profile.fct_call_time > 0


WRONG = {
    "dtype": lambda: (VECTOR.astype("complex128"), 1),
    "text": lambda: ("x", 1),
    "precision": lambda: (VECTOR, 1.5),
    "dimensions": lambda: (VECTOR.reshape(1, 5), 1),
    "length": lambda: (VECTOR[:4], 1),
    "too few": lambda: (VECTOR,),
    "too many": lambda: (VECTOR, 1, 2),
    "none": lambda: (None, 1),
}


@pytest.fixture(scope="module")
def typed():
    def make(function):
        x, i = pt.vector("x", shape=(5,)), pt.lscalar("i")
        return function([x, i], x * i)

    return both(make)


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_arguments_get_pytensors_own_messages(kind, typed):
    ours, stock = (raised_by(function, *WRONG[kind]()) for function in typed)
    assert type(ours) is type(stock)
    assert _without_places(ours) == _without_places(stock)


def _without_places(error):
    """Return a message without the function's location in the sources."""
    return [line for line in str(error).splitlines() if "test_functions.py" not in line]


def test_failures_have_the_class_message_and_notes_of_stock():
    def make(function):
        x, n = pt.vector("x"), pt.lscalar("n")
        return function([x, n], Assert("n is negative")(x, n >= 0) * 2)

    with pytensor.config.change_flags(exception_verbosity="medium"):
        ours, stock = (raised_by(function, VECTOR, -1) for function in both(make))
    assert type(ours) is type(stock) is AssertionError
    heads = [heads_of(error) for error in (ours, stock)]
    assert heads[0] == heads[1]
    assert heads[0][0] == "n is negative"
    assert "Apply node that caused the error" in heads[0]


def heads_of(error):
    """Return the beginnings of a message's lines; the rest names storage and locations."""
    return [line.partition(":")[0] for line in str(error).splitlines() if line]


def test_lengths_that_do_not_fit_raise_as_stock_and_change_nothing():
    state = pytensor.shared(np.zeros(5), name="state")

    def make(function):
        x, y = pt.vectors("xy")
        return function([x, y], x + y, updates={state: state + x})

    ours, stock = (raised_by(function, VECTOR, VECTOR[:3]) for function in both(make))
    assert type(ours) is type(stock)
    assert str(ours).splitlines()[0] == str(stock).splitlines()[0]
    np.testing.assert_array_equal(state.get_value(), np.zeros(5))


def test_copies_of_a_function():
    state = pytensor.shared(np.zeros(5), name="state")
    x = pt.vector("x")
    function = native_function([x], state + x, updates={state: state + 1})
    function(VECTOR)
    made = {
        "copy": function.copy(),
        "shared": function.copy(share_memory=True),
        "deepcopy": copy.deepcopy(function),
        "pickle": pickle.loads(pickle.dumps(function)),
    }
    for name, other in made.items():
        assert isinstance(other.vm, NativeThunk), name
        assert other.vm is not function.vm
    for name in ("deepcopy", "pickle"):
        # Their shared variables are copies as well.
        np.testing.assert_array_equal(made[name](VECTOR), VECTOR + 1)
        np.testing.assert_array_equal(made[name](VECTOR), VECTOR + 2)
    np.testing.assert_array_equal(made["copy"](VECTOR), VECTOR + 1)
    np.testing.assert_array_equal(function(VECTOR), VECTOR + 2)
    np.testing.assert_array_equal(made["shared"](VECTOR), VECTOR + 3)


def test_shared_variables_can_be_swapped():
    one = pytensor.shared(np.ones(5), name="one")
    other = pytensor.shared(np.full(5, 9.0), name="other")
    x = pt.vector("x")
    function = native_function([x], x * one)
    swapped = function.copy(swap={one: other})
    np.testing.assert_array_equal(swapped(VECTOR), VECTOR * 9)
    np.testing.assert_array_equal(function(VECTOR), VECTOR)


def test_threads_may_call_one_machine_code_of_many_functions():
    x = pt.vector("x")
    function = native_function([x], [pt.exp(x).cumsum(), (x**2).sum()])

    def run(number):
        # PyTensor's functions are not thread-safe: each thread has its own, with shared code.
        own = function.copy()
        assert own.vm.address == function.vm.address or own.vm.compiled
        given = np.linspace(0, number / 10, 2_000)
        for _ in range(50):
            sums, squares = own(given)
            np.testing.assert_allclose(sums, np.exp(given).cumsum())
            np.testing.assert_allclose(squares, (given**2).sum())
        call = function.vm.jit_fn
        for _ in range(50):
            np.testing.assert_allclose(call(given)[0], np.exp(given).cumsum())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(8)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forks_call_and_compile():
    x = pt.vector("x")
    function = native_function([x], pt.exp(x) * 3)
    child = os.fork()
    if not child:
        status = 1
        try:
            np.testing.assert_allclose(function(VECTOR), np.exp(VECTOR) * 3)
            other = native_function([x], pt.sin(x) - 0.75)
            np.testing.assert_allclose(other(VECTOR), np.sin(VECTOR) - 0.75)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_allclose(function(VECTOR), np.exp(VECTOR) * 3)


def _resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="it needs Linux")
def test_calls_do_not_leak():
    x = pt.vector("x")
    function = native_function([x], [pt.exp(x), x.sum(), (x[:, None] * x)[::2]])
    call, given = function.vm.jit_fn, np.linspace(0, 1, 100)
    n_calls = 100_000 if IS_DEEP else 10_000
    for k in range(n_calls):
        function(given)
        call(given)
        if k == n_calls // 10:
            gc.collect()
            before = _resident()
    gc.collect()
    assert _resident() - before < 8 << 20


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="it needs Linux")
def test_compiles_do_not_leak():
    n_compiles = 1_000 if IS_DEEP else 80
    x = pt.vector("x")
    for k in range(n_compiles + 20):
        factor = 0.5 + k / 100
        function = native_function([x], pt.exp(x * factor).sum())
        np.testing.assert_allclose(function(VECTOR), np.exp(VECTOR * factor).sum())
        if k == 20:
            gc.collect()
            before = _resident()
    del function
    gc.collect()
    # Caches keep some hundreds of compiled graphs, and a thousand rewritten graphs, of tens of
    # kilobytes each.
    assert _resident() - before < 96 << 20
