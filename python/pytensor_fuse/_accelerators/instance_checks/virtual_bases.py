"""Classes that take others for their subclasses which do not derive from them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def has_virtual_subclasses(base: type) -> bool:
    """Whether a class, or one that derives from it, has any: registered, or by a hook."""
    registered: Any = import_module("_abc")._get_dump
    seen: set[type] = set()
    todo: list[type[Any]] = [base]
    while todo:
        class_ = todo.pop()
        if class_ in seen:
            continue
        seen.add(class_)
        todo.extend(type.__subclasses__(class_))
        if "__subclasshook__" in vars(class_):
            return True
        if hasattr(class_, "_abc_impl") and registered(class_)[0]:
            return True
    return False
