"""The cache level: ``PYTENSOR_FUSE_CACHE``, and blocks with or without the cache."""

from __future__ import annotations

import os
import threading
import warnings
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Final

from pytensor_fuse._startup.features import OFF, ON, on_now

if TYPE_CHECKING:
    from collections.abc import Iterator

    # A context manager that is a decorator, too, for which typing has no public name.
    from contextlib import _GeneratorContextManager

VARIABLE: Final = "PYTENSOR_FUSE_CACHE"


class Level(Enum):
    """Where rewritten graphs are cached."""

    OFF = "off"
    MEMORY = "memory"
    DISK = "disk"
    # In memory, and each hit is compared with a new rewriting of the graph.
    VERIFY = "verify"


DEFAULT: Final = Level.DISK

# Words for all or nothing, as for every feature.
_WORDS: Final = {**dict.fromkeys(ON, DEFAULT), **dict.fromkeys(OFF, Level.OFF)}


class _Blocks(threading.local):
    """The blocks that are open in this thread, the innermost one last."""

    def __init__(self) -> None:
        self.flags: list[bool] = []


_blocks = _Blocks()


def _level_by_environment() -> Level:
    value = os.environ.get(VARIABLE, "").strip().lower()
    if not value:
        return DEFAULT
    try:
        return _WORDS.get(value) or Level(value)
    except ValueError:
        names = ", ".join(level.value for level in Level)
        warnings.warn(
            f"{VARIABLE}={value!r} is none of {names}; it is taken for {DEFAULT.value}",
            RuntimeWarning,
            stacklevel=2,
        )
        return DEFAULT


_level: Final = _level_by_environment()


def level() -> Level:
    """Return the current level for compilations in this thread."""
    if "cache" not in on_now():
        return Level.OFF
    if _blocks.flags and not _blocks.flags[-1]:
        return Level.OFF
    if _blocks.flags and _level is Level.OFF:
        return Level.MEMORY
    return _level


def cached(flag: bool = True) -> _GeneratorContextManager[None]:
    """Compile with the cache, or without it, in a block or a function.

    The innermost block decides; other threads are not affected. With ``PYTENSOR_FUSE_CACHE=off``,
    a block with the cache uses memory only.

    Parameters
    ----------
    flag : bool, optional
        Whether rewritten graphs are looked up and cached.

    Returns
    -------
    context manager
        It can be used as a decorator, too.

    Raises
    ------
    TypeError
        If ``flag`` is neither True nor False.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> from pytensor_fuse import cached
    >>> x = pt.vector("x")
    >>> with cached(False):
    ...     f = pytensor.function([x], pt.exp(x))  # rewritten, whatever has been kept
    """
    if not isinstance(flag, bool):
        raise TypeError(f"flag must be True or False, not {flag!r}")
    return _within(flag)


@contextmanager
def _within(flag: bool) -> Iterator[None]:
    """Apply a flag in this thread until the block ends."""
    _blocks.flags.append(flag)
    try:
        yield
    finally:
        _blocks.flags.pop()
