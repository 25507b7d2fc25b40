"""Constants of machine code, in the layout that it reads."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pytensor_fuse._native.emission.packing import Packing
    from pytensor_fuse._native.program.model import Program

# In bytes. Vectors of small elements are shorter, as all vectors of a loop have as many lanes.
_WIDEST_VECTOR: Final = 64


def laid_out(
    constants: Sequence[np.ndarray[Any, Any]], packing: Packing, read: Collection[int]
) -> list[np.ndarray[Any, Any]]:
    """Return copies of the constants of a program: packed, or padded with their last element.

    A pack takes the place of its first member. Its other members, and constants that are not read,
    are replaced by empty arrays.
    """
    found = {}
    for positions in packing.packs:
        pack = _pack([constants[position] for position in positions], packing.lanes)
        found.update(dict.fromkeys(positions, pack[:0]))
        found[positions[0]] = pack
    return [
        found[position]
        if position in found
        else _padded(one if position in read else one.reshape(-1)[:0])
        for position, one in enumerate(constants)
    ]


def bytes_of(laid_out: np.ndarray[Any, Any]) -> bytes:
    """Return the bytes of an array of `laid_out`, including the padding behind it."""
    data = laid_out.tobytes()
    last = data[-laid_out.itemsize :] or bytes(laid_out.itemsize)
    return data + last * (_WIDEST_VECTOR // laid_out.itemsize)


def table_of(arrays: Sequence[np.ndarray[Any, Any]]) -> ctypes.Array[ctypes.c_void_p]:
    """Return the table of the addresses of arrays, which must outlive it."""
    return (ctypes.c_void_p * max(len(arrays), 1))(*[one.ctypes.data for one in arrays])


def read_constants(program: Program) -> set[int]:
    """Return the positions of the constants that a program has buffers for."""
    return {about.position for about in program.buffers if about.kind == "constant"}


def positive_constants(
    constants: Sequence[np.ndarray[Any, Any]], read: Collection[int]
) -> set[int]:
    """Return the constants, among those that are read, without negative elements or -0.0."""
    return {
        position
        for position in read
        for one in [constants[position]]
        if not (np.signbit(one).any() if one.dtype.kind == "f" else (one < 0).any())
    }


def _padded(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy of an array from which whole vectors can be read.

    The padding repeats the last element: computing on it is as fast as on the array, and as an
    index it is in bounds.
    """
    n_elements = _WIDEST_VECTOR // data.itemsize
    whole = np.full(data.size + n_elements, data.flat[-1] if data.size else 0, data.dtype)
    out = whole[: data.size].reshape(data.shape)
    out[...] = data
    return out


def _pack(arrays: Sequence[np.ndarray[Any, Any]], lanes: int) -> np.ndarray[Any, Any]:
    """Return the interleaved vectors of arrays with the same length and dtype."""
    size = arrays[0].size
    n_whole, left = divmod(size, lanes)
    pack = np.empty((n_whole + (left > 0), len(arrays), lanes), arrays[0].dtype)
    for number, array in enumerate(arrays):
        flat = array.reshape(-1)
        pack[:n_whole, number] = flat[: n_whole * lanes].reshape(n_whole, lanes)
        if left:
            pack[n_whole, number] = flat[-1]
            pack[n_whole, number, :left] = flat[n_whole * lanes :]
    return pack
