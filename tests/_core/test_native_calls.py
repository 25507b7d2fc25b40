"""Machine code called with arrays: what it gets, and what comes back."""

from __future__ import annotations

import numpy as np
import pytest

from support.native.llvm import (
    ENTRY,
    INCREMENTED,
    NOTHING,
    CodeError,
    Labelled,
    doubled,
    native,
    scalars_added,
)


def unaligned(x):
    place = np.zeros(x.nbytes + 1, "u1")[1:].view(x.dtype).reshape(x.shape)
    place[...] = x
    assert not place.flags.aligned
    return place


X = np.arange(6.0).reshape(2, 3)

LAYOUTS = {
    "plain": X,
    "fortran": np.asfortranarray(X),
    "transposed": X.T,
    "strided": np.arange(24.0).reshape(4, 6)[::2, ::2],
    "backward": X[::-1, ::-1],
    "repeated": np.broadcast_to(np.arange(3.0), (2, 3)),
    "unaligned": unaligned(X),
    "swapped": X.astype(">f8"),
    "no rows": np.zeros((0, 3)),
    "no columns": np.zeros((4, 0))[::2],
    "subclass": X.view(Labelled),
    "read-only": np.frombuffer(X.tobytes()).reshape(2, 3),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    x = LAYOUTS[layout]
    before = x.copy()
    (y,) = doubled(-1, -1).call((x,))
    assert type(y) is np.ndarray
    assert y.dtype == np.float64
    assert y.flags.c_contiguous
    assert y.flags.writeable
    np.testing.assert_array_equal(y, 2 * before)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_fast_call_converts_nothing(layout):
    x = LAYOUTS[layout]
    is_plain = layout in {"plain", "no rows", "no columns", "read-only"}
    found = doubled(-1, -1).call_checked((x,))
    assert (found is not None) == is_plain
    if is_plain:
        np.testing.assert_array_equal(found[0], 2 * x)


@pytest.mark.parametrize("x", [3.0, np.float64(3.0), np.array(3.0), np.array(3.0, ">f8")])
def test_scalars(x):
    (y,) = doubled().call([x])
    assert isinstance(y, np.ndarray)
    assert (y.shape, y) == ((), 6.0)


@pytest.mark.parametrize("x", [3.0, np.float64(3.0), None, [3.0], np.array(3)])
def test_the_fast_call_takes_no_scalars(x):
    assert doubled().call_checked((x,)) is None


def test_a_c_type_of_the_same_numbers_is_the_same():
    function = native(NOTHING, [("int64", (-1,))], [("input", 0)])
    for name in ("l", "q"):
        x = np.arange(3, dtype=name)
        if x.dtype.itemsize == 8:
            assert function.call((x,))[0] is x
            assert function.call_checked((x,))[0] is x


@pytest.mark.parametrize(
    ("x", "found"),
    [
        (np.zeros(3, "float32"), "an array of dtype float32 with 1 dimension"),
        (np.zeros(3, ">f4"), "an array of dtype >f4 with 1 dimension"),
        (np.zeros(3, "int64"), "an array of dtype int64 with 1 dimension"),
        (np.zeros(3, "O"), "an array of dtype object with 1 dimension"),
        (np.zeros((3, 1)), "an array of dtype float64 with 2 dimensions"),
        (np.zeros(()), "an array of dtype float64 with 0 dimensions"),
        (np.float64(3.0), "an object of type numpy.float64"),
        (3.0, "an object of type float"),
        ([3.0], "an object of type list"),
        (None, "an object of type NoneType"),
    ],
)
def test_wrong_types(x, found):
    function = doubled(-1)
    text = f"input 0: expected an array of dtype float64 with 1 dimension, found {found}"
    with pytest.raises(TypeError) as error:
        function.call((x,))
    assert str(error.value) == text
    assert function.call_checked((x,)) is None


@pytest.mark.parametrize("x", [3, True, 3j, np.float32(3.0), np.int64(3), "3", np.str_("3")])
def test_wrong_scalars(x):
    with pytest.raises(TypeError, match="input 0: expected an array of dtype float64 with 0 dim"):
        doubled().call((x,))


def test_python_scalars_of_other_types():
    for dtype, x in [("int64", 3), ("bool", True), ("complex128", 3j)]:
        function = native(NOTHING, [(dtype, ())], [("input", 0)])
        (found,) = function.call((x,))
        assert (found.dtype, found.shape, found) == (np.dtype(dtype), (), x)


def test_a_known_length():
    function = doubled(-1, 3)
    assert function.call((np.ones((5, 3)),))[0].shape == (5, 3)
    text = "input 0: axis 1 must have length 3, not 4"
    for x in (np.ones((3, 4)), np.ones((4, 3)).T):
        with pytest.raises(ValueError, match=text):
            function.call((x,))
        assert function.call_checked((x,)) is None


def test_the_lengths_of_all_inputs():
    # The sum of the seven lengths, each with a weight of its own.
    body = ENTRY + " {\n"
    total = "0"
    for k in range(7):
        body += f"""
  %at{k} = getelementptr i64, ptr %dims, i64 {k}
  %length{k} = load i64, ptr %at{k}
  %weighed{k} = mul i64 %length{k}, {10**k}
  %sum{k} = add i64 {total}, %weighed{k}"""
        total = f"%sum{k}"
    body += f"""
  %y = call ptr @allocate(ptr %context, i64 0, ptr null)
  store i64 {total}, ptr %y
  ret i64 0
}}"""
    unknown = (-1, -1, -1)
    inputs = [("float32", unknown), ("int8", ()), ("bool", unknown[:1]), ("complex64", unknown)]
    function = native(body, inputs, [("fresh", "int64", 0)])
    args = (
        np.zeros((1, 2, 3), "f4"),
        np.int8(0),
        np.zeros(4, "?"),
        np.zeros((7, 6, 5), "c8").T,
    )
    assert function.call(args) == [7654321]


@pytest.mark.parametrize("args", [(), (1.0,), (1.0, 2.0, 3.0)])
def test_a_wrong_number_of_arguments(args):
    function = scalars_added(2, 1)
    with pytest.raises(TypeError, match=f"{len(args)} arguments for a function of 2 inputs"):
        function.call(args)
    assert function.call_checked(tuple(map(np.asarray, args))) is None


def test_arguments_that_are_no_tuple():
    for args in (np.zeros(1), 1.0, None, "x"):
        with pytest.raises(TypeError):
            scalars_added(1, 1).call(args)
        with pytest.raises(TypeError):
            scalars_added(1, 1).call_checked(args)


def test_no_inputs_and_no_outputs():
    assert native(NOTHING, [], []).call(()) == []
    assert native(NOTHING, [], []).call_checked(()) == []
    assert scalars_added(0, 2).call([]) == [0.0, 1.0]


@pytest.mark.parametrize("n_inputs", [1, 15, 200])
def test_many(n_inputs):
    function = scalars_added(n_inputs, n_inputs)
    args = [np.array(k / 2) for k in range(n_inputs)]
    expected = [sum(args) + k for k in range(n_inputs)]
    assert function.call(args) == expected
    assert function.call_checked(tuple(args)) == expected


def test_constants():
    body = (
        ENTRY
        + """ {
  %at = getelementptr ptr, ptr %constants, i64 1
  %data = load ptr, ptr %at
  %place = getelementptr float, ptr %data, i64 2
  %value = load float, ptr %place
  %y = call ptr @allocate(ptr %context, i64 0, ptr null)
  store float %value, ptr %y
  ret i64 0
}"""
    )
    function = native(
        body,
        [],
        [("fresh", "float32", 0)],
        constants=[np.zeros(0), np.array([1, 2, 7], "float32")],
    )
    assert function.call(()) == [7.0]


def test_a_destroyed_input():
    function = native(INCREMENTED, [("float64", (-1,))], [("input", 0)], destroyed=[0])
    x = np.zeros(4)
    (y,) = function.call((x,))
    assert y is x
    (y,) = function.call_checked((x,))
    assert y is x
    assert x[0] == 2

    strided = np.zeros(8)[::2]
    (y,) = function.call((strided,))
    assert strided[0] == 0
    np.testing.assert_array_equal(y, [1, 0, 0, 0])

    x.flags.writeable = False
    assert function.call_checked((x,)) is None
    (y,) = function.call((x,))
    assert y is not x
    assert y.flags.writeable
    assert (x[0], y[0]) == (2, 3)


def test_outputs_that_are_inputs_and_outputs():
    function = native(
        NOTHING,
        [("float64", (-1,)), ("int32", ())],
        [("input", 1), ("output", 0), ("input", 0), ("output", 1)],
    )
    x, k = np.zeros(3).view(Labelled), np.array(1, "int32")
    found = function.call((x, k))
    assert [id(one) for one in found] == [id(one) for one in (k, k, x, k)]
    # A copy is the same in all of them.
    found = function.call((np.zeros(6)[::2], np.int32(1)))
    assert found[0] is found[1] is found[3]


def test_failures():
    body = (
        ENTRY
        + """ {
  %x = load ptr, ptr %inputs
  %number = load i64, ptr %x
  call void @detail(ptr %context, i64 0, i64 -5)
  call void @detail(ptr %context, i64 7, i64 %number)
  %y = call ptr @allocate(ptr %context, i64 0, ptr null)
  store i64 0, ptr %y
  ret i64 %number
}"""
    )
    declared = [("int64", ())], [("fresh", "int64", 0)]
    function = native(body, *declared)
    assert function.call((0,)) == [0]
    for call in (function.call, function.call_checked):
        with pytest.raises(CodeError) as error:
            call((np.array(3),))
        assert error.value.args == (3, (-5, 0, 0, 0, 0, 0, 0, 3))
    with pytest.raises(MemoryError):
        function.call((-1,))
    with pytest.raises(SystemError, match="returned -2"):
        function.call((-2,))

    def fails(number, details):
        raise KeyError(number)

    with pytest.raises(KeyError, match="3"):
        native(body, *declared, fail=fails).call((3,))
    with pytest.raises(TypeError):
        native(body, *declared, fail=lambda number, details: None).call((3,))


def asking(requests, outputs=(("fresh", "float64", 2),)):
    """Return a function that asks for arrays of lengths that the input has, and then fails."""
    lines = [ENTRY + " {", "  %x = load ptr, ptr %inputs"]
    for number, output in enumerate(requests):
        lines += [
            f"  %y{number} = call ptr @allocate(ptr %context, i64 {output}, ptr %x)",
            f"  %null{number} = icmp eq ptr %y{number}, null",
        ]
    lines += [f"  %code = select i1 %null{len(requests) - 1}, i64 -1, i64 0"]
    lines += ["  ret i64 %code", "}"]
    return native("\n".join(lines), [("int64", (2,))], outputs)


@pytest.mark.parametrize(
    ("lengths", "error"),
    [
        ((-1, 3), ValueError),
        ((2**62, 2**62), ValueError),
        ((2**61, 4), ValueError),
        ((2**40, 2**10), MemoryError),
    ],
)
def test_arrays_that_cannot_be_made(lengths, error):
    function = asking([0])
    assert function.call((np.array([2, 3]),))[0].shape == (2, 3)
    for call in (function.call, function.call_checked):
        with pytest.raises(error):
            call((np.array(lengths),))
    assert function.call((np.array([2, 3]),))[0].shape == (2, 3)


@pytest.mark.parametrize(
    ("requests", "outputs", "text"),
    [
        ([0, 0], [("fresh", "float64", 2)], "allocated an output twice"),
        ([1], [("fresh", "float64", 2)], "none of its own"),
        ([-1], [("fresh", "float64", 2)], "none of its own"),
        ([0], [("input", 0)], "none of its own"),
        ([0], [("fresh", "float64", 2), ("fresh", "float64", 0)], "without output 1"),
        ([1], [("fresh", "float64", 2), ("fresh", "float64", 2)], "without output 0"),
    ],
)
def test_wrong_requests(requests, outputs, text):
    function = asking(requests, outputs)
    for _ in range(3):
        with pytest.raises(SystemError, match=text):
            function.call((np.array([2, 3]),))


def test_nothing_is_made_after_an_array_that_cannot_be():
    function = asking([0, 1], [("fresh", "float64", 2), ("fresh", "float64", 2)])
    with pytest.raises(MemoryError):
        function.call((np.array([2**40, 2**10]),))


SCRATCH = (
    ENTRY
    + """ {
  %x = load ptr, ptr %inputs
  %bytes = load i64, ptr %x
  %arena = call ptr @scratch(ptr %context, i64 %bytes)
  %null = icmp eq ptr %arena, null
  br i1 %null, label %none, label %some
none:
  ret i64 -1
some:
  %place = ptrtoint ptr %arena to i64
  %y = call ptr @allocate(ptr %context, i64 0, ptr null)
  store i64 %place, ptr %y
  %last = sub i64 %bytes, 1
  %end = getelementptr i8, ptr %arena, i64 %last
  %any = icmp sgt i64 %bytes, 0
  br i1 %any, label %write, label %done
write:
  store i8 1, ptr %arena
  store i8 1, ptr %end
  br label %done
done:
  MORE
  ret i64 0
}"""
)


def test_intermediate_memory():
    function = native(SCRATCH.replace("MORE", ""), [("int64", ())], [("fresh", "int64", 0)])
    for n_bytes in (0, 1, 64, 1000, 10, 10**7, 2**27, 5):
        (place,) = function.call((n_bytes,))
        assert place != 0
        assert place % 64 == 0
    for n_bytes in (-1, 2**62):
        with pytest.raises(MemoryError, match="intermediate results"):
            function.call((n_bytes,))
    assert function.call((5,))[0] != 0


def test_intermediate_memory_is_kept():
    function = native(SCRATCH.replace("MORE", ""), [("int64", ())], [("fresh", "int64", 0)])
    places = [int(function.call((n_bytes,))[0]) for n_bytes in (1000, 1000, 10)]
    assert len(set(places)) == 1


def test_intermediate_memory_may_be_asked_for_again():
    more = """
  %second = call ptr @scratch(ptr %context, i64 100)
  %other = ptrtoint ptr %second to i64
  %apart = sub i64 %other, %place
  store i64 %apart, ptr %y"""
    function = native(SCRATCH.replace("MORE", more), [("int64", ())], [("fresh", "int64", 0)])
    for _ in range(1000):
        (apart,) = function.call((1000,))
        assert apart % 64 == 0
        assert apart >= 1000 or apart <= -100
