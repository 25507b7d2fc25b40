"""Values, and their encodings."""

from __future__ import annotations

import math
import struct

import numpy as np
from hypothesis import strategies as st

from pytensor_fuse._identity.encoding import Encoding
from pytensor_fuse._identity.terms import ENCODERS


def encoded(value):
    encoding = Encoding(ENCODERS)
    encoding.encode(value)
    return bytes(encoding.data), tuple(encoding.children)


numbers = st.one_of(
    st.integers(-3, 3),
    st.integers(),
    st.booleans(),
    st.sampled_from([np.int8(1), np.int64(0), np.int64(2), np.uint8(3), np.bool_(True)]),
    st.sampled_from([0.0, 1.0, 0.5, -2.0, 1e300, math.inf, np.float32(0.5), np.float64(1)]),
    st.sampled_from([1j, 1 + 0j, 0.5 + 2j]),
)


leaves = st.one_of(numbers, st.none(), st.text(max_size=3), st.binary(max_size=3), st.just(...))


hashable = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple), st.frozensets(inner, max_size=3)
    ),
    max_leaves=6,
)


values = st.recursive(
    hashable,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(hashable, inner, max_size=3),
        st.builds(slice, inner, inner, inner),
    ),
    max_leaves=8,
)


def plain(value):
    """Return the value with Python's numbers; NumPy compares a number with a list elementwise."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, slice):
        return slice(*map(plain, (value.start, value.stop, value.step)))
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return type(value)(map(plain, value))
    return value


def nan(payload):
    (value,) = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0000 | payload))
    return value
