"""Values are encoded equally exactly if they are equal."""

from __future__ import annotations

import dataclasses
import enum
import math
import types
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytensor_fuse._identity.encoding import Encoding, NotByValueError
from pytensor_fuse._identity.terms import ENCODERS
from support.encodings import encoded, nan, plain, values


@given(values, values)
def test_values_are_encoded_equally_exactly_if_they_are_equal(a, b):
    assert (encoded(a) == encoded(b)) == (plain(a) == plain(b))


@given(st.lists(values, max_size=4), st.lists(values, max_size=4))
def test_what_follows_a_value_is_not_part_of_it(a, b):
    one, other = Encoding(ENCODERS), Encoding(ENCODERS)
    for encoding, items in ((one, a), (other, b)):
        for item in items:
            encoding.encode(item)
    assert (one.data == other.data) == (plain(a) == plain(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (0.0, -0.0),
        (0, -0.0),
        (complex(1, 0.0), complex(1, -0.0)),
        (complex(0.0, 1), complex(-0.0, 1)),
        (nan(1), nan(2)),
        (nan(1), 0.0),
        (np.array([0.0]), np.array([-0.0])),
        (np.array([1, 2]), np.array([[1, 2]])),
        (np.array([1], "int32"), np.array([1], "float32")),
        (np.datetime64(1, "s"), np.datetime64(1, "ms")),
        ("1", b"1"),
        ((), []),
        ((1, (2,)), (1, 2)),
        (("a", "b"), ("ab",)),
        ({}, frozenset()),
        (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)),
        (np.float64, np.float32),
        (math.sin, math.cos),
        (range(3), range(4)),
        (np.dtype("float32"), np.dtype("float64")),
    ],
)
def test_different_values(a, b):
    assert encoded(a) != encoded(b)


Pair = namedtuple("Pair", "a b")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Number(enum.IntEnum):
    ONE = 1


@dataclasses.dataclass(frozen=True)
class Info:
    n: int
    note: str = dataclasses.field(default="", compare=False)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (nan(5), nan(5)),
        (np.float64(nan(5)), nan(5)),
        (-0.0, np.float32(-0.0)),
        (np.arange(6).reshape(2, 3).T, np.arange(6).reshape(2, 3).T.copy()),
        (np.arange(3, dtype=">i4"), np.arange(3, dtype="<i4")),
        (np.arange(3, dtype="l"), np.arange(3, dtype="q" if np.dtype("l").itemsize == 8 else "i")),
        (np.dtype(">f8"), np.dtype("<f8")),
        (Pair(1, 2), (1, 2)),
        (Number.ONE, 1),
        (Color.RED, Color.RED),
        (Info(1, "a"), Info(1, "b")),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        (range(0, 5, 2), range(0, 6, 2)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.str_("a"), "a"),
    ],
)
def test_equal_values(a, b):
    assert encoded(a) == encoded(b)


def test_long_doubles_are_encoded_where_a_double_is_as_good():
    assert encoded(np.longdouble(0.5)) == encoded(0.5)
    if np.finfo(np.longdouble).eps < np.finfo(float).eps:
        with pytest.raises(NotByValueError):
            encoded(1 + np.finfo(np.longdouble).eps)
