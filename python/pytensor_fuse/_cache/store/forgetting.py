"""Callbacks for clearing data that other subpackages store beside the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_forgetting: Final[list[Callable[[], object]]] = []


def forget_with_cache(forget: Callable[[], object]) -> None:
    """Register a callback for when the cache is cleared.

    Parameters
    ----------
    forget
        Discards data that can be computed again.
    """
    _forgetting.append(forget)


def forget_others() -> None:
    """Discard all data that are stored beside the cache."""
    for forget in _forgetting:
        forget()
