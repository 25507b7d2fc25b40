"""Functions of machine code for the tests, and the same ones by Numba alone."""

from __future__ import annotations

from contextlib import contextmanager

import pytensor
from pytensor.tensor.type import TensorType

import pytensor_fuse
from pytensor_fuse._native.linking.thunks import NativeThunk
from support.switching import switched

_ALL = (
    "fusion",
    "merging",
    "joins",
    "linalg",
    "cache",
    "other_data",
    "single_runs",
    "nutpie",
    "exact_constants",
    "accelerators",
)


@contextmanager
def by_numba():
    """Let Numba compile everything in the block, with all other settings unchanged."""
    with switched(False, **dict.fromkeys(_ALL, False)):
        assert not pytensor_fuse.status()["native"].is_on
        yield


def stock_function(*args, **kwargs):
    """Return a PyTensor function by Numba."""
    with by_numba():
        made = pytensor.function(*args, mode="NUMBA", **kwargs)
    assert not isinstance(made.vm, NativeThunk)
    return made


def native_function(*args, **kwargs):
    """Return a PyTensor function that is machine code as a whole."""
    made = pytensor.function(*args, mode="NUMBA", **kwargs)
    assert isinstance(made.vm, NativeThunk), made.vm
    return made


def kind(dtype, *shape):
    """Return a type of arrays."""
    return TensorType(dtype, shape)
