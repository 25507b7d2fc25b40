"""Encodings of objects that are equal only to themselves: by name, or else by identity.

A class or function that every process imports under its name is encoded as that name. Any other
object has a term of its own for as long as it lives, without a digest.
"""

from __future__ import annotations

import sys
import types
import weakref
from typing import TYPE_CHECKING, Any

from pytensor_fuse._identity.encoding import NotByValueError
from pytensor_fuse._identity.references import RememberedTerms
from pytensor_fuse._identity.table import table

if TYPE_CHECKING:
    from pytensor_fuse._identity.encoding import Encoding

# The classes whose instances are encoded by name if possible.
NAMED = (type, types.FunctionType)

objects = RememberedTerms()

# The first object that was met under each name; later ones are encoded by identity.
_first_of_name: dict[str, weakref.ref[Any]] = {}


def import_name(value: Any) -> str | None:
    """Return the name under which ``value`` is imported in every process, if there is one."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    # Another process has another main module.
    if not module or not name or module in ("__main__", "__mp_main__"):
        return None
    found: Any = sys.modules.get(module)
    for attribute in name.split("."):
        found = getattr(found, attribute, None)
    if found is not value:
        return None
    full_name = f"{module}:{name}"
    try:
        first = _first_of_name.setdefault(full_name, weakref.ref(value))
    except TypeError:
        return None
    return full_name if first() is value else None


def encode_named(value: Any, encoding: Encoding) -> None:
    """Encode ``value`` by its name, if it has one, or else by its identity."""
    name = import_name(value)
    if name is None:
        encode_identity(value, encoding)
    else:
        encoding.data += b"n"
        encoding.encode(name)


def encode_identity(value: Any, encoding: Encoding) -> None:
    """Encode ``value`` as an object that is equal only to itself."""
    known = objects.find(value)
    if known is None:
        try:
            known = objects.remember(value, table.opaque())
        except TypeError:
            raise NotByValueError from None
    encoding.add_term(known)


def encode_builtin(value: types.BuiltinFunctionType, encoding: Encoding) -> None:
    """Encode a function that is written in C."""
    # Each access to a method of an object makes a new method object.
    if not isinstance(value.__self__, types.ModuleType):
        raise NotByValueError
    encode_named(value, encoding)


def encode_method(value: types.MethodType, encoding: Encoding) -> None:
    """Encode a bound method: two are equal if they are bound to the same object."""
    encoding.data += b"m"
    encode_named(value.__func__, encoding)
    encode_identity(value.__self__, encoding)
