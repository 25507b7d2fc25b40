"""Content of constants: their data as bytes, compared bit for bit.

PyTensor's signatures treat 0.0 and -0.0 as equal, and any two NaNs; a computation can distinguish
them. Here, two constants have the same content only if no computation can distinguish them.
"""

from __future__ import annotations

import struct
import sys
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from pytensor_fuse._identity.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytensor.graph.basic import Constant

# Longer data are digested: the odds that two of 2^64 contents share 256 bits are below 2^-128.
_LONGEST = 64
_DIGEST_SIZE = 32


def content(constant: Constant[Any]) -> bytes | None:
    """Return the data of a constant as bytes that are the same in every process.

    Two constants of one type have equal bytes if and only if their data are equal, bit for bit; the
    type is not part of the bytes.

    Returns
    -------
    bytes or None
        None if the data have no exact content: for arrays of objects, and for Python objects other
        than numbers, strings, slices, and lists and tuples of those. Only the identity of such data
        distinguishes constants.

    Notes
    -----
    Takes time in proportion to the data; the result is short unless the data are long strings,
    integers or lists.
    """
    return data_content(constant.data)


def data_content(data: Any) -> bytes | None:
    """Return the content of the data of a constant; see `content`."""
    return _ENCODERS[type(data)](data)


def _array(data: np.ndarray | np.generic) -> bytes | None:
    header = _array_header(data.dtype, data.shape)
    if header is None:
        return None
    if not _LITTLE_ENDIAN_HOST:
        data = data.astype(data.dtype.newbyteorder("<" if data.dtype.isnative else ">"))
    if data.nbytes <= _LONGEST:
        return header + data.tobytes()
    # Contiguous data are digested without a copy.
    return header + blake2b(np.ascontiguousarray(data).data, digest_size=_DIGEST_SIZE).digest()


_LITTLE_ENDIAN_HOST = sys.byteorder == "little"


@lru_cache(maxsize=4096)
def _array_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes | None:
    """Return the header of an array's content; None if its bits are not its content."""
    # The bits of an extended float include padding, and those of an object are its address.
    if dtype.kind not in "biufc" or dtype.char in "gG":
        return None
    # The byte order counts, since a computation may misread swapped elements as native ones.
    order = "" if dtype.isnative else "swapped "
    return f"{order}{dtype.name}{list(shape)}:".encode()


def _scalar(data: np.generic) -> bytes | None:
    encoded = _array(data)
    return None if encoded is None else b"scalar " + encoded


def _sequence(name: bytes) -> Callable[[Iterable[Any]], bytes | None]:
    def encode_items(data: Iterable[Any]) -> bytes | None:
        parts = [name]
        for item in data:
            encoded = data_content(item)
            if encoded is None:
                return None
            parts.append(b"%d:%b" % (len(encoded), encoded))
        return b" ".join(parts)

    return encode_items


def _slice(data: slice) -> bytes | None:
    return _encode_slice((data.start, data.stop, data.step))


def _sparse(data: Any) -> bytes | None:
    layout = f"{type(data).__name__} {data.shape}"
    return _encode_sparse((layout, data.data, data.indices, data.indptr))


_encode_slice = _sequence(b"slice")
_encode_sparse = _sequence(b"sparse")


def _unknown(data: Any) -> None:
    return None


def _choose_encoder(class_: type) -> Callable[[Any], bytes | None]:
    # By exact class: a subclass may interpret the same data in another way.
    encoder: Callable[[Any], bytes | None] = _unknown
    if class_.__module__ == "numpy" and issubclass(class_, np.generic):
        encoder = _scalar
    elif class_.__module__ in ("scipy.sparse._csc", "scipy.sparse._csr"):
        encoder = _sparse
    else:
        return encoder
    # These classes are never collected, so their encoders can be kept.
    _ENCODERS[class_] = encoder
    return encoder


_ENCODERS: Registry[Callable[[Any], bytes | None]] = Registry(
    {
        np.ndarray: _array,
        np.memmap: _array,
        bool: lambda data: b"True" if data else b"False",
        int: lambda data: b"int %d" % data,
        float: lambda data: b"float " + struct.pack("<d", data),
        complex: lambda data: b"complex " + struct.pack("<dd", data.real, data.imag),
        str: lambda data: b"str " + data.encode("utf-8", "surrogatepass"),
        bytes: lambda data: b"bytes " + data,
        type(None): lambda data: b"None",
        type(...): lambda data: b"Ellipsis",
        slice: _slice,
        tuple: _sequence(b"tuple"),
        list: _sequence(b"list"),
    },
    _choose_encoder,
)
