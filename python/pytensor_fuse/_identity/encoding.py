"""Encodings under construction, which dispatch each part of a value to its encoder.

Encoders call each other through the encoding that they write to, since a tuple may hold an op, an
op a graph, and a graph ops. So no module of encoders imports those above it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from pytensor_fuse._core import Term
    from pytensor_fuse._identity.registry import Registry


class NotByValueError(Exception):
    """The value has no encoding that equal values share."""


class Encoding:
    """A partial encoding: bytes, and the terms that they refer to, in order.

    Parameters
    ----------
    encoders
        The encoders of values, by class.
    data
        The initial bytes.
    """

    __slots__ = ("children", "data", "encoders")

    def __init__(self, encoders: Registry[Encoder], data: bytes = b"") -> None:
        self.encoders = encoders
        self.data = bytearray(data)
        self.children: list[Term] = []

    def encode(self, value: Any) -> None:
        """Append the encoding of ``value``.

        Raises
        ------
        NotByValueError
            If ``value`` has no encoding. A part of it may have been appended.
        """
        self.encoders[type(value)](value, self)

    def add_term(self, term: Term) -> None:
        """Append a reference to ``term``."""
        self.data += b"T"
        self.children.append(term)

    def empty(self) -> Encoding:
        """Return an empty encoding with the same encoders."""
        return Encoding(self.encoders)


Encoder: TypeAlias = Callable[[Any, Encoding], None]
