"""What other packages of this one keep beside the cache, and forget when it is cleared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_forgetting: Final[list[Callable[[], object]]] = []


def forget_with_cache(forget: Callable[[], object]) -> None:
    """Have something called whenever the cache is cleared.

    Parameters
    ----------
    forget
        Forgets what can be made anew.
    """
    _forgetting.append(forget)


def forget_others() -> None:
    """Forget all that is kept beside the cache."""
    for forget in _forgetting:
        forget()
