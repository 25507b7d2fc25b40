"""Random arrays, indices and values to write, for the tests of indexing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from hypothesis import strategies as st

DTYPES = ("float64", "float32", "int64", "int32", "int16", "uint8", "bool")
INDEX_DTYPES = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")


class Case(NamedTuple):
    """A graph's inputs with their values, and parts of the graph."""

    inputs: list[Any]
    values: list[Any]


def fill(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Return an array of distinct numbers, some of which are negative where the dtype allows it."""
    numbers = np.random.default_rng(seed).permutation(int(np.prod(shape))).reshape(shape)
    if dtype == "bool":
        return numbers % 2 == 0
    if dtype.startswith("uint"):
        return numbers.astype(dtype)
    return ((numbers - 3) * (0.37 if dtype.startswith("float") else 1)).astype(dtype)


@st.composite
def variables(draw: Any, case: Case, value: np.ndarray, name: str, exact: bool = False) -> Any:
    """Draw an input with a value: its shape is static, unknown, or partly static."""
    shape = tuple(
        length if exact or draw(st.booleans(), label=f"{name} static") else None
        for length in value.shape
    )
    variable = pt.tensor(name, dtype=str(value.dtype), shape=shape)
    case.inputs.append(variable)
    case.values.append(value)
    return variable


@st.composite
def shapes(draw: Any, least: int = 1, most: int = 3) -> tuple[int, ...]:
    lengths = st.sampled_from([0, 1, 2, 3, 4, 5, 9])
    return tuple(draw(st.lists(lengths, min_size=least, max_size=most), label="shape"))


@st.composite
def integers(draw: Any, case: Case, least: int, most: int, *, may_be_left_out: bool = False) -> Any:
    """Draw an integer for an index, a constant or an input, or None; and its value."""
    kind = draw(
        st.sampled_from(["none", "constant", "input"] if may_be_left_out else ["constant", "input"])
    )
    if kind == "none":
        return None
    number = draw(st.integers(least, most))
    if kind == "constant":
        return number
    # PyTensor's rewrites of slices fail on unsigned integers.
    dtypes = [dtype for dtype in INDEX_DTYPES if dtype[0] == "i" or not may_be_left_out]
    fits = [one for one in dtypes if np.iinfo(one).min <= number <= np.iinfo(one).max]
    variable = pt.scalar(f"i{len(case.inputs)}", dtype=draw(st.sampled_from(fits)))
    case.inputs.append(variable)
    case.values.append(number)
    return variable


@st.composite
def slices(draw: Any, case: Case, length: int) -> slice:
    start = draw(integers(case, -length - 2, length + 2, may_be_left_out=True))
    stop = draw(integers(case, -length - 2, length + 2, may_be_left_out=True))
    least = draw(st.sampled_from([1, -3]))
    step = draw(integers(case, least, least + 2, may_be_left_out=True))
    return slice(start, stop, step)


@st.composite
def basic_indices(draw: Any, case: Case, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Draw slices and integers in bounds, for some of the first axes."""
    out: list[Any] = []
    for length in shape[: draw(st.integers(1, len(shape)), label="n indices")]:
        if length and draw(st.integers(0, 2)) == 0:
            out.append(draw(integers(case, -length, length - 1)))
        else:
            out.append(draw(slices(case, length)))
    return tuple(out)


@st.composite
def index_arrays(
    draw: Any, case: Case, length: int, group: tuple[int, ...], distinct: bool = False
) -> Any:
    """Draw an index array that broadcasts to a group of axes."""
    skipped = draw(st.integers(0, len(group)))
    shape = tuple(1 if draw(st.integers(0, 3)) == 0 else one for one in group[skipped:])
    if length == 0:
        shape = (*shape[:-1], 0) if shape else (0,)
    size = int(np.prod(shape))
    dtype = draw(st.sampled_from(INDEX_DTYPES))
    least = 0 if dtype.startswith("u") else -length
    numbers = (
        draw(st.lists(st.integers(least, length - 1), min_size=size, max_size=size)) if size else []
    )
    value = np.array(numbers, dtype=dtype).reshape(shape)
    if draw(st.booleans()):
        # PyTensor turns a descending constant into a slice, with a wrong step if unsigned.
        return pt.constant(np.sort(value, axis=None).reshape(shape) if dtype[0] == "u" else value)
    return draw(variables(case, value, f"k{len(case.inputs)}", exact=False))


@st.composite
def masks(draw: Any, case: Case, shape: tuple[int, ...]) -> Any:
    size = int(np.prod(shape))
    value = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype=bool)
    if draw(st.integers(0, 3)) == 0:
        return pt.constant(value.reshape(shape))
    return draw(variables(case, value.reshape(shape), f"m{len(case.inputs)}"))


@st.composite
def advanced_indices(draw: Any, case: Case, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Draw indices that contain index arrays or masks."""
    if draw(st.integers(0, 3)) == 0:
        axis = draw(st.integers(0, len(shape) - 1))
        n_axes = draw(st.integers(1, len(shape) - axis))
        before = [draw(slices(case, length)) for length in shape[:axis]]
        return (*before, draw(masks(case, shape[axis : axis + n_axes])))
    group = tuple(draw(st.lists(st.integers(0, 4), max_size=2), label="group"))
    if 0 in shape:
        # No index is in bounds there.
        group = (*group[:-1], 0)
    has_array = draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    has_array[draw(st.integers(0, len(shape) - 1))] = True
    last = max(axis for axis, is_one in enumerate(has_array) if is_one)
    return tuple(
        draw(index_arrays(case, length, group)) if is_one else draw(slices(case, length))
        for length, is_one in zip(shape[: last + 1], has_array[: last + 1], strict=True)
    )


def values_of(case: Case, indices: Any) -> Any:
    """Return the values of indices."""
    given = dict(zip(case.inputs, case.values, strict=True))

    def value(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(value(one) for one in part)
        if isinstance(part, slice):
            return slice(value(part.start), value(part.stop), value(part.step))
        if part in given:
            return given[part]
        return part.data if hasattr(part, "data") else part

    return value(indices)


@st.composite
def written(
    draw: Any, case: Case, dtype: str, shape: tuple[int, ...], *, stretches_unknown: bool
) -> Any:
    """Draw the value to write to a selection: an input that broadcasts to its shape.

    ``stretches_unknown`` states whether a broadcast axis may have unknown length.
    """
    # With several indexed axes, np.add.at misreads a value of fewer axes.
    some = draw(st.integers(0, len(shape))) if stretches_unknown else 0
    skipped = draw(st.sampled_from([0, some, len(shape)]))
    own = tuple(1 if draw(st.integers(0, 3)) == 0 else length for length in shape[skipped:])
    smaller = {"float64": ("float32", "int32"), "int64": ("int16", "uint8")}.get(dtype, ())
    value = fill(own, draw(st.sampled_from([dtype, dtype, *smaller])), seed=7)
    static = tuple(
        length
        if (length == 1 and not stretches_unknown) or draw(st.booleans(), label="y static")
        else None
        for length in own
    )
    variable = pt.tensor("y", dtype=str(value.dtype), shape=static)
    case.inputs.append(variable)
    case.values.append(value)
    return variable
