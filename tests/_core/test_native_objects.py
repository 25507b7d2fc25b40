"""Functions of machine code as objects: cells, attributes, what they keep, who calls them when."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

from pytensor_fuse._core import NativeFunction
from support.native.llvm import (
    ENTRY,
    INCREMENTED,
    NOTHING,
    CodeError,
    Labelled,
    compiled,
    doubled,
    native,
    scalars_added,
)


class Marked:
    """An object that can be referred to weakly."""


def test_attributes():
    code = compiled(NOTHING)
    function = native(NOTHING, [("int8", ())] * 3, [("input", 2), ("output", 0)])
    assert (function.address, function.n_inputs, function.n_outputs) == (code.address, 3, 2)
    with pytest.raises(AttributeError):
        function.address = 3
    function.jit_fn = test_attributes
    function.storage_map = {}
    assert function.jit_fn is test_attributes
    assert vars(function) == {"jit_fn": test_attributes, "storage_map": {}}


def test_a_subclass():
    class Thunk(NativeFunction):
        def __new__(cls, name, *args):
            self = super().__new__(cls, *args)
            self.name = name
            return self

    code = compiled(INCREMENTED)
    declared = [("float64", (-1,))], [], [("input", 0)], CodeError, [0]
    function = Thunk("more", code.address, code, *declared)
    assert isinstance(function, NativeFunction)
    assert function.name == "more"
    assert function.call((np.zeros(1),)) == [[1.0]]
    function.bind([[np.zeros(1)]], [[None]])
    assert function() == [[1.0]]


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"address": 0}, ValueError, "the address is 0"),
        ({"address": -1}, OverflowError, "negative"),
        ({"fail": None}, TypeError, "fail must be callable"),
        ({"inputs": [("float64", (-2,))]}, ValueError, "input 0: -2 is no length"),
        ({"inputs": [("f8", ()), ("object", ())]}, ValueError, "input 1: object is no dtype"),
        ({"inputs": [("U3", ())]}, ValueError, "input 0: <U3 is no dtype"),
        ({"inputs": [("datetime64[s]", ())]}, ValueError, "input 0: datetime64"),
        ({"inputs": [(">f8", ())]}, ValueError, "input 0: >f8 is no dtype of native"),
        ({"inputs": [("nothing", ())]}, TypeError, "nothing"),
        ({"inputs": [("f8", (-1,) * 65)]}, ValueError, "input 0 has 65 dimensions"),
        ({"outputs": [("fresh", "f8", 65)]}, ValueError, "output 0 has 65 dimensions"),
        ({"outputs": [("fresh", "f8")]}, ValueError, "output 0 is"),
        ({"outputs": [("new", "f8", 0)]}, ValueError, "output 0 is"),
        ({"outputs": [("input", 1)]}, ValueError, "output 0 names input 1, of 1"),
        ({"outputs": [("output", 0)]}, ValueError, "output 0 names earlier output 0, of 0"),
        ({"destroyed": [1]}, ValueError, "destroyed names input 1, of 1"),
        ({"constants": [3.0]}, TypeError, "constant 0 is no array"),
        ({"constants": [np.zeros(4), np.zeros(4)[::2]]}, ValueError, "constant 1 is not C-cont"),
        ({"constants": [np.zeros(4, ">f8")]}, ValueError, "constant 0: >f8 is no dtype"),
        ({"constants": [np.zeros(9, "u1")[1:].view("f8")]}, ValueError, "constant 0 is not"),
    ],
)
def test_declarations_that_make_no_sense(changes, error, text):
    code = compiled(NOTHING)
    given = {
        "address": code.address,
        "owner": code,
        "inputs": [("float64", ())],
        "constants": [],
        "outputs": [],
        "fail": CodeError,
    }
    NativeFunction(**given)
    with pytest.raises(error, match=text):
        NativeFunction(**given | changes)


def test_cells():
    function = scalars_added(2, 2)
    with pytest.raises(RuntimeError, match="call bind first"):
        function()
    inputs, outputs = [[np.array(1.0)], [np.array(2.0)]], [[None], [None]]
    function.bind(inputs, outputs)
    found = function()
    assert found == [3.0, 4.0]
    assert all(cell[0] is value for cell, value in zip(outputs, found, strict=True))
    inputs[1][0] = 7.0
    assert function() == [8.0, 9.0]
    assert found == [3.0, 4.0]
    inputs[0][0] = None
    with pytest.raises(TypeError, match=r"input 0: .* NoneType"):
        function()
    assert [cell[0] for cell in outputs] == [8.0, 9.0]
    inputs[0].clear()
    with pytest.raises(IndexError):
        function()
    inputs[0].append(np.array(0.0))
    outputs[1].clear()
    with pytest.raises(IndexError):
        function()
    with pytest.raises(RuntimeError, match="has cells already"):
        function.bind(inputs, outputs)
    with pytest.raises(TypeError):
        function(3)


def test_wrong_cells():
    function = scalars_added(2, 1)
    cell = [None]
    with pytest.raises(ValueError, match="1 input cells for 2 inputs"):
        function.bind([cell], [cell])
    with pytest.raises(ValueError, match="2 output cells for 1 outputs"):
        function.bind([cell, cell], [cell, cell])
    with pytest.raises(ValueError, match="n_arguments is 3, of 2 inputs"):
        function.bind([cell, cell], [cell], 3)
    with pytest.raises(TypeError):
        function.bind([cell, (None,)], [cell])
    with pytest.raises(RuntimeError, match="call bind first"):
        function()


def test_the_fast_call_takes_the_others_from_cells():
    function = scalars_added(3, 1)
    x, shared = np.array(1.0), [np.array(10.0)]
    assert function.call_checked((x,)) is None
    out = [None]
    function.bind([[None], shared, [np.array(100.0)]], [out])
    assert function.call_checked((x,)) == [111.0]
    assert function.call_checked((x, x)) == [102.0]
    assert out == [None]
    assert function.call_checked(()) is None
    assert function.call_checked((x, x, x, x)) is None
    shared[0] = 10.0
    assert function.call_checked((x,)) is None
    shared.clear()
    assert function.call_checked((x,)) is None


def test_the_fast_call_takes_as_many_as_said():
    function = scalars_added(3, 1)
    x = np.array(1.0)
    function.bind([[x], [x], [x]], [[None]], n_arguments=2)
    assert function.call_checked((x, x)) == [3.0]
    assert function.call_checked((x,)) is None
    assert function.call_checked((x, x, x)) is None
    assert function.call((x, x, x)) == [3.0]


def test_what_is_kept():
    owner, fail = Marked(), CodeError
    constant = np.zeros(3)
    code = compiled(NOTHING)
    known = [weakref.ref(owner), weakref.ref(constant)]
    function = NativeFunction(code.address, owner, [], [constant], [], fail)
    del owner, constant
    gc.collect()
    assert all(ref() is not None for ref in known)
    assert function.call(()) == []
    del function
    assert all(ref() is None for ref in known)


@pytest.mark.parametrize("through", ["attribute", "input cell", "output cell", "owner", "fail"])
def test_circles_are_collected(through):
    owner, fail = Marked(), Marked()
    fail.__class__ = type("Callable", (), {"__call__": lambda *_: None})
    code = compiled(NOTHING)
    inputs, outputs = [[None]], [[None]]
    function = NativeFunction(code.address, owner, [("float64", ())], [], [("input", 0)], fail)
    function.bind(inputs, outputs)
    if through == "attribute":
        function.me = function
    elif through == "input cell":
        inputs[0][0] = function
    elif through == "output cell":
        outputs[0][0] = function
    elif through == "owner":
        owner.function = function
    else:
        fail.function = function
    ref = weakref.ref(function)
    del function, inputs, outputs, owner, fail
    gc.collect()
    assert ref() is None


def test_calls_leave_nothing_behind():
    function = native(
        ENTRY
        + """ {
  %x = load ptr, ptr %inputs
  %number = load i64, ptr %x
  %y = call ptr @allocate(ptr %context, i64 1, ptr %dims)
  %z = call ptr @allocate(ptr %context, i64 2, ptr null)
  ret i64 %number
}""",
        [("int64", (-1,))],
        [("input", 0), ("fresh", "float64", 1), ("fresh", "int8", 0), ("output", 1)],
    )
    x, strided, failing = np.zeros(5000, int), np.zeros(9, int)[::2], np.ones(3, int)
    inputs, outputs = [[x]], [[None] for _ in range(4)]
    function.bind(inputs, outputs)

    def calls(n_times):
        for _ in range(n_times):
            function.call((x,))
            function.call([x])
            function.call((strided,))
            function.call_checked((x,))
            function.call_checked((strided,))
            function()
            for bad in ((failing,), (None,), ()):
                with contextlib.suppress(CodeError, TypeError):
                    function.call(bad)

    objects = x, strided, failing, np.dtype("float64"), np.dtype("int8"), np.dtype("int64")
    calls(10)
    # Garbage of other tests refers to the same dtypes, and what it frees may be garbage, too.
    while gc.collect():
        pass
    counts = [sys.getrefcount(one) for one in objects]
    tracemalloc.start()
    calls(100)
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    calls(20_000)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [sys.getrefcount(one) for one in objects] == counts
    assert after - before < 10_000


def test_results_are_new_as_long_as_somebody_has_them():
    function = doubled(-1)
    kept = [function.call((np.full(3, float(k)),))[0] for k in range(100)]
    assert len({id(one) for one in kept}) == 100
    for k, one in enumerate(kept):
        np.testing.assert_array_equal(one, 2 * k)
    views = [function.call((np.full(3, float(k)),))[0][1:] for k in range(100)]
    buffers = [memoryview(function.call((np.full(3, float(k)),))[0]) for k in range(100)]
    for k, (view, buffer) in enumerate(zip(views, buffers, strict=True)):
        np.testing.assert_array_equal(view, 2 * k)
        assert list(buffer) == [2 * k] * 3


def read_only(y):
    y.flags.writeable = False


@pytest.mark.parametrize("n", [0, 1, 4])
def test_what_was_changed_about_a_result_does_not_come_back(n):
    function = doubled(-1)
    x = np.arange(float(n))
    for change in (
        read_only,
        lambda y: y.resize((2, 2), refcheck=False),
        lambda y: y.resize((n + 1,), refcheck=False),
        lambda y: y.__setstate__((1, (n, 1), np.dtype("int64"), False, bytes(8 * n))),
        lambda y: y.__setstate__((1, (n,), np.dtype(">f8"), False, bytes(8 * n))),
    ):
        (y,) = function.call((x,))
        change(y)
        del y
        for _ in range(3):
            (y,) = function.call((x,))
            assert (y.dtype, y.shape) == (np.dtype("float64"), (n,))
            assert y.flags.writeable
            assert y.flags.owndata
            np.testing.assert_array_equal(y, 2 * x)


def test_a_weak_reference_to_a_result_leads_nowhere_else():
    function = doubled(-1)
    x = np.arange(3.0)
    (y,) = function.call((x,))
    called = []
    ref = weakref.ref(y, lambda _: called.append(function.call((x,))))
    del y
    for _ in range(3):
        (y,) = function.call((x,))
        assert ref() is not y
    function = None
    assert all(ref() is not one for one in called)


def test_a_large_result_is_not_kept():
    function = doubled(-1)
    small, large, plain = (
        function.call((np.zeros(9),)),
        function.call((np.zeros(9999),)),
        [np.zeros(1)],
    )
    assert sys.getrefcount(small[0]) == sys.getrefcount(plain[0]) + 1
    assert sys.getrefcount(large[0]) == sys.getrefcount(plain[0])


def test_a_call_from_within():
    depths = []

    def fail(number, details):
        depths.append(int(details[0]))
        if details[0] > 0:
            inner = np.full(2, details[0] - 1)
            with pytest.raises(CodeError) as error:
                function.call((inner,))
            assert error.value.args == (7, details[0] - 1)
        return CodeError(number, details[0])

    function = native(
        ENTRY
        + """ {
  %x = load ptr, ptr %inputs
  %number = load i64, ptr %x
  call void @detail(ptr %context, i64 0, i64 %number)
  %y = call ptr @allocate(ptr %context, i64 0, ptr %dims)
  ret i64 7
}""",
        [("int64", (-1,))],
        [("fresh", "int64", 1)],
        fail=fail,
    )
    with pytest.raises(CodeError):
        function.call((np.full(3, 20),))
    assert depths == list(range(20, -1, -1))


class Dying(np.ndarray):
    """An array that calls a function when it is freed."""

    def __del__(self):
        Dying.function.call((np.zeros(2),))


def test_a_call_while_results_are_stored():
    function = Dying.function = doubled(-1)
    try:
        x = np.arange(3.0)
        out = [np.zeros(1).view(Dying)]
        function.bind([[x]], [out])
        (y,) = function()
        assert out[0] is y
        np.testing.assert_array_equal(y, 2 * x)
    finally:
        del Dying.function


class Meddling(np.ndarray):
    """An array that empties the cells when it is copied."""

    def __array_finalize__(self, obj):
        for cell in Meddling.cells:
            cell[0] = None


def test_cells_that_change_while_an_argument_is_copied():
    function = native(
        ENTRY
        + """ {
  %at = getelementptr ptr, ptr %inputs, i64 1
  %x = load ptr, ptr %at
  %value = load double, ptr %x
  %y = call ptr @allocate(ptr %context, i64 0, ptr null)
  store double %value, ptr %y
  ret i64 0
}""",
        [("float64", (-1,))] * 2,
        [("fresh", "float64", 0)],
    )
    Meddling.cells = []
    strided = np.zeros(8).view(Meddling)[::2]
    Meddling.cells = [[strided], [np.full(1000, 5.0)]]
    function.bind(Meddling.cells, [[None]])
    del strided
    assert function() == [5.0]
    assert Meddling.cells == [[None], [None]]


def test_threads():
    function = doubled(-1)
    wrong = []

    def calls(thread):
        for k in range(2000):
            x = np.full(1 + k % 7, float(thread * 10_000 + k))
            (y,) = function.call((x if k % 3 else np.repeat(x, 2)[::2],))
            if not np.array_equal(y, 2 * x):
                wrong.append((thread, k))

    threads = [threading.Thread(target=calls, args=(thread,)) for thread in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


def test_arrays_of_a_subclass_stay_what_they_are():
    x = np.zeros(2).view(Labelled)
    function = native(INCREMENTED, [("float64", (-1,))], [("input", 0)], destroyed=[0])
    assert function.call((x,))[0] is x


def test_the_garbage_collector_may_run_while_functions_are_made():
    code = compiled(NOTHING)
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        # Their dictionaries are new ones once the free ones have been used.
        made = [NativeFunction(code.address, code, [], [], [], CodeError) for _ in range(300)]
    finally:
        gc.set_threshold(*threshold)
    assert all(function.call(()) == [] for function in made)
