"""Encodings of objects by the attributes that their classes compare."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor.graph.op import HasInnerGraph, Op
from pytensor.link.c.type import EnumType

from pytensor_fuse._identity.encoding import NotByValueError
from pytensor_fuse._identity.names import encode_named
from pytensor_fuse._pytensor.graphs.comparison import COMPARED_BY_CALLING, also_compared, compared

if TYPE_CHECKING:
    from pytensor_fuse._core import Term
    from pytensor_fuse._identity.encoding import Encoding


class _ComparedClass(NamedTuple):
    """The parts of a class's instances that distinguish them.

    Attributes
    ----------
    reference
        The class.
    name
        The encoding of the class.
    child
        The term of the class, if it has no name.
    compared
        The attributes that the class compares, with their labels in the encoding; None if unknown.
    is_op, is_enum, has_graph
        Whether the instances are ops, enumerations, ops with inner graphs.
    """

    reference: weakref.ref[type]
    name: bytes
    child: Term | None
    compared: tuple[tuple[str, bytes], ...] | None
    is_op: bool
    is_enum: bool
    has_graph: bool


# By id of the class; an entry is removed when its class is collected.
compared_classes: dict[int, _ComparedClass] = {}


def _compared_class(class_: type, encoding: Encoding) -> _ComparedClass:
    known = compared_classes.get(id(class_))
    if known is None or known.reference() is not class_:
        own = encoding.empty()
        encode_named(class_, own)
        names = compared(class_)
        # Instead of `issubclass`, which is slow at denying that a class derives from an abstract
        # one.
        bases = class_.__mro__
        has_graph = HasInnerGraph in bases
        if names is not None and has_graph and "fgraph" not in names:
            # Some classes do not compare it, but ops with different inner graphs are different.
            names = (*names, "fgraph")
        number = id(class_)
        known = _ComparedClass(
            weakref.ref(class_, lambda _: compared_classes.pop(number, None)),
            bytes(own.data),
            own.children[0] if own.children else None,
            None if names is None else tuple((name, _label(name)) for name in names),
            Op in bases,
            EnumType in bases,
            has_graph,
        )
        compared_classes[number] = known
    return known


def _label(name: str) -> bytes:
    return b"%b=" % name.encode()


def encode_attributes(value: Any, encoding: Encoding) -> bool:
    """Encode the class of ``value`` and the attributes that it compares.

    Returns
    -------
    bool
        Whether the encoding is complete. Attributes that cannot be encoded are left out.
    """
    class_ = _compared_class(type(value), encoding)
    encoding.data += class_.name
    if class_.child is not None:
        encoding.children.append(class_.child)
    if class_.compared is None:
        return False
    complete = True
    for name, label in class_.compared:
        encoding.data += label
        complete &= _try(getattr(value, name, None), encoding)
    if class_.is_enum:
        complete &= _try(dict(value), encoding)
    if class_.is_op:
        # Some classes do not compare these, but an op that overwrites an input differs from one
        # that does not. Maps of the class are implied by the class.
        own = value.__dict__
        for name in ("destroy_map", "view_map"):
            if part := own.get(name):
                encoding.data += _label(name)
                complete &= _try({key: tuple(items) for key, items in part.items()}, encoding)
    if class_.has_graph:
        for name in also_compared(value):
            encoding.data += _label(name)
            complete &= _try(getattr(value, name), encoding)
        for name in COMPARED_BY_CALLING:
            if part := getattr(value, name, None):
                encoding.data += _label(name)
                complete &= _try(part, encoding, with_digest=True)
    return complete


def _try(part: Any, encoding: Encoding, *, with_digest: bool = False) -> bool:
    n_bytes, n_children = len(encoding.data), len(encoding.children)
    try:
        encoding.encode(part)
        new = encoding.children[n_children:]
        if not with_digest or all(child.has_digest for child in new):
            return True
    except NotByValueError:
        pass
    del encoding.data[n_bytes:]
    del encoding.children[n_children:]
    encoding.data += b"?"
    return False


def encode_helper(value: Any, encoding: Encoding) -> None:
    """Encode an object that compares attributes but is neither an op nor a type."""
    encoding.data += b"p"
    if not encode_attributes(value, encoding):
        raise NotByValueError
