"""Tags of nodes and variables, whose class looks attributes up in Python."""

from __future__ import annotations

import copy
from typing import Any

_copied = object.__reduce_ex__
_reconstruct: Any = vars(copy)["_reconstruct"]


def copy_tag(self: Any) -> Any:
    """Do as `copy.copy` of an object without ways of its own to be copied."""
    class_: Any = type(self)
    if (
        class_.__reduce_ex__ is not _copied
        or class_.__reduce__ is not object.__reduce__
        or getattr(class_, "__getstate__", None) is not getattr(object, "__getstate__", None)
        or hasattr(class_, "__setstate__")
        or hasattr(class_, "__slots__")
        or class_.__new__ is not object.__new__
    ):
        return _reconstruct(self, None, *self.__reduce_ex__(4))
    made = object.__new__(class_)
    made.__dict__.update(self.__dict__)
    return made
