"""Terms remembered for as long as their objects live, by weak reference."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytensor_fuse._core import Term


class _Reference(weakref.ref[Any]):
    """A weak reference that knows the id of its object, and the term of that."""

    __slots__ = ("number", "term")

    number: int
    term: Term


class RememberedTerms:
    """Terms of living objects, by their identity."""

    def __init__(self) -> None:
        # By id of the object; an entry goes when its object does.
        self._references: dict[int, _Reference] = {}

    def find(self, value: object) -> Term | None:
        """Return the term of ``value``, None if it is not known."""
        known = self._references.get(id(value))
        return known.term if known is not None and known() is value else None

    def remember(self, value: object, term: Term) -> Term:
        """Let ``term`` be that of ``value``, unless another thread was faster.

        Returns
        -------
        Term
            The one that is remembered: two threads must agree on a term that is not by value.

        Raises
        ------
        TypeError
            If there can be no weak reference to ``value``, so that its end would go unnoticed.
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
