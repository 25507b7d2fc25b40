"""An encoding under construction, and how the encoder of each part of a value is found.

Encoders call each other through the encoding that they write to: a tuple may hold an op, which may
hold a graph, which holds ops. So no module of encoders has to import those above it.
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
    """What has been encoded so far: bytes, and the terms that they refer to in order.

    Parameters
    ----------
    encoders
        Finds the encoder of a value.
    data
        What comes first.
    """

    __slots__ = ("children", "data", "encoders")

    def __init__(self, encoders: Registry[Encoder], data: bytes = b"") -> None:
        self.encoders = encoders
        self.data = bytearray(data)
        self.children: list[Term] = []

    def encode(self, value: Any) -> None:
        """Add ``value``.

        Raises
        ------
        NotByValueError
            If it has no encoding. A part of it may have been added.
        """
        self.encoders[type(value)](value, self)

    def add_term(self, term: Term) -> None:
        """Refer to ``term``."""
        self.data += b"T"
        self.children.append(term)

    def empty(self) -> Encoding:
        """Return an encoding of nothing, with the same encoders."""
        return Encoding(self.encoders)


Encoder: TypeAlias = Callable[[Any, Encoding], None]
