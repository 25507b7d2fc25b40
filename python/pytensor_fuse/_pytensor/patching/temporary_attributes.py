"""Attributes that have other values for a while; the targets are not known in advance."""

from __future__ import annotations

from typing import Any

_ABSENT = object()


class TemporaryAttributes:
    """Attributes of classes and objects that have been replaced, and are to be restored.

    Where `patches` know their targets in advance, this takes classes that are created meanwhile,
    and each object when it is first used.
    """

    def __init__(self) -> None:
        # By name and address of the owner, which the value keeps alive; in the order of the
        # replacements.
        self._replaced: dict[tuple[int, str], tuple[Any, object, object]] = {}

    def has(self, owner: object, name: str) -> bool:
        """Whether this attribute has been replaced here."""
        return (id(owner), name) in self._replaced

    def replace(self, owner: Any, name: str, value: object) -> None:
        """Set another value for an attribute, once; an inherited one becomes the owner's own."""
        key = id(owner), name
        if key not in self._replaced:
            self._replaced[key] = owner, vars(owner).get(name, _ABSENT), value
            setattr(owner, name, value)

    def undo(self) -> None:
        """Restore all attributes, the last one first.

        Attributes that something else has replaced since are left alone.
        """
        while self._replaced:
            (_, name), (owner, before, ours) = self._replaced.popitem()
            if vars(owner).get(name) is not ours:
                continue
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)


def class_tree(root: type) -> list[type]:
    """Return a class and its subclasses, each once."""
    found = {root: None}
    pending = [root]
    while pending:
        subclasses: list[type] = type.__subclasses__(pending.pop())
        for subclass in subclasses:
            if subclass not in found:
                found[subclass] = None
                pending.append(subclass)
    return list(found)
