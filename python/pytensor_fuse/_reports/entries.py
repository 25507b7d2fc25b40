"""Reports that are tuples of their entries, and plain types for JSON."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pytensor_fuse._reports.report import TextReport

if TYPE_CHECKING:
    from collections.abc import Collection

T = TypeVar("T")

# The version of the dicts' layout.
_FORMAT = 1


class Entries(TextReport, tuple[T, ...]):
    """A tuple of the entries of a report, which prints them."""

    _if_empty: ClassVar[str]

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or self._if_empty

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, ready for JSON.

        Returns
        -------
        dict
            ``format`` is the version of this layout, and ``entries`` a list of the entries.
        """
        return {"format": _FORMAT, "entries": plain(self)}


def plain(value: Any) -> Any:
    """Return a record in plain types: dicts, lists, numbers and texts; enums by their names."""
    if is_dataclass(value):
        return plain_fields(value)
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {plain(key): plain(each) for key, each in value.items()}
    return value


def plain_fields(record: Any, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of a record in plain types, without some, which have no plain form."""
    return {
        each.name: plain(getattr(record, each.name))
        for each in fields(record)
        if each.name not in without
    }
