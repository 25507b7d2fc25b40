"""Cache of the terms of objects, with weak references to the objects."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytensor_fuse._core import Term


class _Reference(weakref.ref[Any]):
    """A weak reference with the id of its object and the object's term."""

    __slots__ = ("number", "term")

    number: int
    term: Term


class RememberedTerms:
    """Terms of living objects, by their identity."""

    def __init__(self) -> None:
        # By id of the object; an entry is removed when its object is collected.
        self._references: dict[int, _Reference] = {}

    def find(self, value: object) -> Term | None:
        """Return the term of ``value``, or None if it is not cached."""
        known = self._references.get(id(value))
        return known.term if known is not None and known() is value else None

    def remember(self, value: object, term: Term) -> Term:
        """Cache ``term`` as the term of ``value``, unless another thread was faster.

        Returns
        -------
        Term
            The cached term: two threads must agree on a term that is not by value.

        Raises
        ------
        TypeError
            If ``value`` supports no weak references, so that its end would go unnoticed.
        """
        number = id(value)
        known = _Reference(value, self._forget)
        known.number = number
        known.term = term
        there = self._references.setdefault(number, known)
        if there is not known and there() is not value:
            self._references[number] = there = known
        return there.term

    def _forget(self, reference: _Reference) -> None:
        if self._references.get(reference.number) is reference:
            del self._references[reference.number]

    def __len__(self) -> int:
        return len(self._references)
