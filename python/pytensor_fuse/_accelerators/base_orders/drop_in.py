"""In which order the classes that an op derives from are looked up by trackers of rewriters."""

from __future__ import annotations

from abc import get_cache_token
from functools import _compose_mro  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

from pytensor.graph.rewriting import basic

from pytensor_fuse._pytensor.patching.drop_ins import DropIn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor_fuse._pytensor.patching.patches import Patch

_MANY = 4096


class _Orders:
    """The orders that are known, for as long as no class is registered with an abstract one."""

    def __init__(self) -> None:
        self.token = get_cache_token()
        self.known: dict[tuple[type, frozenset[type]], list[type]] = {}


_orders = _Orders()


def compose_mro(cls: type, types: Iterable[type]) -> list[type]:
    """Do as `functools._compose_mro`, once for each class and set of types."""
    global _orders
    orders = _orders
    if orders.token != get_cache_token() or len(orders.known) >= _MANY:
        _orders = orders = _Orders()
    key = cls, frozenset(types)
    found: Any = orders.known.get(key)
    if found is None:
        found = orders.known[key] = _compose_mro(cls, types)
    return list(found)


def patch() -> Patch:
    """Return the patch."""
    return DropIn(basic, "_compose_mro", compose_mro)
