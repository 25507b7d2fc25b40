"""Terms by ``__eq__``, for objects with a comparison of their own that cannot be encoded.

Living objects that are equal by their own ``__eq__`` share a term. The term has no digest, since
another process cannot compare with them.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from pytensor_fuse._identity.table import lock, table

if TYPE_CHECKING:
    from pytensor_fuse._core import Term


class _EqualObjects:
    """Living objects that are equal, and their common term."""

    def __init__(self, rest: Term) -> None:
        # Kept alive so that no other term gets its id, which is part of a key of `equal_objects`.
        self.rest = rest
        self.term = table.compound(b"equal", (rest, table.opaque()))
        self.members: dict[int, weakref.ref[Any]] = {}

    def contains_equal_of(self, value: Any) -> bool:
        for reference in list(self.members.values()):
            member = reference()
            if member is not None:
                try:
                    return member is value or bool(member == value)
                except Exception:  # A third-party ``__eq__`` that fails counts as unequal.
                    return False
        return False


# By the id of the term of an object's encodable part, and the hash of the object.
equal_objects: dict[tuple[int, int], list[_EqualObjects]] = {}


def term_by_equality(value: Any, rest: Term) -> Term:
    """Return the common term of ``value`` and the objects that are equal to it by ``__eq__``.

    These must also share ``rest``, the term of their encodable part. An unhashable object gets a
    term of its own.
    """
    try:
        key = (rest.id, hash(value))
    except Exception:
        return table.opaque()
    with lock:
        same_key = equal_objects.setdefault(key, [])
        equals = next((known for known in same_key if known.contains_equal_of(value)), None)
        if equals is None:
            equals = _EqualObjects(rest)
            same_key.append(equals)
        _join(equals, value, key)
        return equals.term


def _join(equals: _EqualObjects, value: Any, key: tuple[int, int]) -> None:
    number = id(value)

    def leave(reference: weakref.ref[Any]) -> None:
        with lock:
            if equals.members.get(number) is reference:
                del equals.members[number]
            if not equals.members and key in equal_objects:
                equal_objects[key] = [known for known in equal_objects[key] if known is not equals]
                if not equal_objects[key]:
                    del equal_objects[key]

    equals.members[number] = weakref.ref(value, leave)
