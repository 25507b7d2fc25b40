"""Encodings of Python's and NumPy's values: equal values have equal encodings.

The exceptions are 0.0 and -0.0, whose bits differ although Python considers them equal. Each
encoding marks its own end, so the encodings of successive values cannot be confused.
"""

from __future__ import annotations

import dataclasses
import struct
import types
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.misc.frozendict import frozendict

from pytensor_fuse._identity.encoding import NotByValueError
from pytensor_fuse._identity.names import encode_builtin, encode_method, encode_named

if TYPE_CHECKING:
    from pytensor_fuse._identity.encoding import Encoder, Encoding


def _none(value: object, encoding: Encoding) -> None:
    encoding.data += b"N"


def _ellipsis(value: object, encoding: Encoding) -> None:
    encoding.data += b"E"


def _integer(value: Any, encoding: Encoding) -> None:
    encoding.data += b"i%x;" % int(value)


def _float(value: Any, encoding: Encoding) -> None:
    number = float(value)
    if number.is_integer() and (number or struct.pack("<d", number) == bytes(8)):
        _integer(number, encoding)
    else:
        encoding.data += b"f" + struct.pack("<d", number)


def _complex(value: Any, encoding: Encoding) -> None:
    number = complex(value)
    imaginary = struct.pack("<d", number.imag)
    if imaginary == bytes(8):
        _float(number.real, encoding)
    else:
        encoding.data += b"c" + struct.pack("<d", number.real) + imaginary


def _string(value: str, encoding: Encoding) -> None:
    encoded = value.encode("utf-8", "surrogatepass")
    encoding.data += b"s%d:%b" % (len(encoded), encoded)


def _bytes(value: bytes, encoding: Encoding) -> None:
    encoding.data += b"b%d:%b" % (len(value), value)


def _tuple(value: Sequence[Any], encoding: Encoding) -> None:
    encoding.data += b"(%d:" % len(value)
    for item in value:
        if type(item) is int:
            encoding.data += b"i%x;" % item
        else:
            encoding.encode(item)


def _list(value: Sequence[Any], encoding: Encoding) -> None:
    encoding.data += b"[%d:" % len(value)
    for item in value:
        encoding.encode(item)


def _ordered_dict(value: OrderedDict[Any, Any], encoding: Encoding) -> None:
    encoding.data += b"o"
    _tuple(tuple(value.items()), encoding)


def _dict(value: Any, encoding: Encoding) -> None:
    encoding.data += b"{"
    if not value:
        encoding.data += b"0:"
        return
    _unordered([(key, value[key]) for key in value], encoding)


def _set(value: Iterable[Any], encoding: Encoding) -> None:
    encoding.data += b"<"
    _unordered(value, encoding)


def _unordered(items: Iterable[Any], encoding: Encoding) -> None:
    """Encode items in a canonical order, which depends only on their values."""
    encoded = []
    for item in items:
        own = encoding.empty()
        own.encode(item)
        digests = [child.digest for child in own.children]
        encoded.append((bytes(own.data), digests, own.children))
    if len(encoded) > 1 and any(None in digests for _, digests, _ in encoded):
        raise NotByValueError
    encoded.sort(key=lambda entry: entry[:2])
    encoding.data += b"%d:" % len(encoded)
    for data, _, children in encoded:
        encoding.data += data
        encoding.children += children


def _slice(value: slice, encoding: Encoding) -> None:
    encoding.data += b":"
    for item in (value.start, value.stop, value.step):
        encoding.encode(item)


def _range(value: range, encoding: Encoding) -> None:
    # Ranges are compared as sequences.
    encoding.data += b"r"
    _tuple((len(value), value[:1] and value[0], value[1:] and value.step), encoding)


def _dtype(value: np.dtype[Any], encoding: Encoding) -> None:
    if value.kind not in "biufcmMSUO" or value.char in "gG":
        raise NotByValueError
    _bytes(value.newbyteorder("<").str.encode(), encoding)


def _array(value: np.ndarray, encoding: Encoding) -> None:
    encoding.data += b"a"
    _dtype(value.dtype, encoding)
    _tuple(value.shape, encoding)
    if value.dtype.hasobject:
        _tuple(value.ravel().tolist(), encoding)
    else:
        _bytes(value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes(), encoding)


def _numpy_scalar(value: np.generic, encoding: Encoding) -> None:
    if isinstance(value, np.bool_ | np.integer) and not isinstance(value, np.timedelta64):
        _integer(value, encoding)
    elif isinstance(value, np.floating | np.complexfloating):
        if value.dtype.char in "gG" and not np.isnan(value) and complex(value) != value:
            raise NotByValueError
        (_float if isinstance(value, np.floating) else _complex)(value, encoding)
    elif isinstance(value, np.str_):
        _string(str(value), encoding)
    elif isinstance(value, np.bytes_):
        _bytes(bytes(value), encoding)
    else:
        _array(np.asarray(value), encoding)


def _enum(value: Enum, encoding: Encoding) -> None:
    encoding.data += b"e"
    encode_named(type(value), encoding)
    encoding.encode(value.value)


def _dataclass(value: Any, encoding: Encoding) -> None:
    encoding.data += b"d"
    encode_named(type(value), encoding)
    for field in dataclasses.fields(value):
        if field.compare:
            encoding.data += b"%b=" % field.name.encode()
            encoding.encode(getattr(value, field.name))


VALUE_ENCODERS: dict[type, Encoder] = {
    type(None): _none,
    type(...): _ellipsis,
    bool: _integer,
    int: _integer,
    float: _float,
    complex: _complex,
    str: _string,
    bytes: _bytes,
    tuple: _tuple,
    list: _list,
    dict: _dict,
    frozendict: _dict,
    types.MappingProxyType: _dict,
    OrderedDict: _ordered_dict,
    set: _set,
    frozenset: _set,
    slice: _slice,
    range: _range,
    np.ndarray: _array,
    types.FunctionType: encode_named,
    types.BuiltinFunctionType: encode_builtin,
    types.MethodType: encode_method,
}

_BASES: tuple[tuple[type, Encoder], ...] = (
    (type, encode_named),
    (np.generic, _numpy_scalar),
    (np.dtype, _dtype),
)


def choose_value_encoder(class_: type) -> Encoder:
    """Return the encoder for the instances of a class that is not in `VALUE_ENCODERS`."""
    for base, encoder in _BASES:
        if issubclass(class_, base):
            return encoder
    equality: Any = class_.__eq__
    if equality is object.__eq__:
        return _enum if issubclass(class_, Enum) else encode_named
    for base, encoder in VALUE_ENCODERS.items():
        # The class extends its base, but compares as its base does.
        if issubclass(class_, base) and equality is base.__eq__:
            return encoder
    if dataclasses.is_dataclass(class_) and _is_generated(equality):
        return _dataclass
    return _no_encoder


def _is_generated(equality: Any) -> bool:
    code = getattr(equality, "__code__", None)
    return code is not None and code.co_filename == "<string>"


def _no_encoder(value: object, encoding: Encoding) -> None:
    raise NotByValueError
