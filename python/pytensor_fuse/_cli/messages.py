"""Messages on stderr."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

# Steps are announced after this many seconds; on a terminal, at once.
_LONG = 2.0


def say(message: str) -> None:
    """Write a line to stderr, with the name of this package."""
    write_error(f"pytensor_fuse: {message}\n")


def fail(message: str, code: int) -> NoReturn:
    """Print an error message, and end the process."""
    say(message)
    sys.exit(code)


def write_error(text: str) -> None:
    """Write a text to stderr, if there is one."""
    # A program may have closed it or set it to None.
    if sys.stderr is not None and not sys.stderr.closed:
        sys.stderr.write(text)
        sys.stderr.flush()


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    """Announce a step: on a terminal at once, otherwise only if it takes long."""
    if sys.stderr is not None and sys.stderr.isatty():
        say(f"{what} ...")
        yield
        return
    timer = threading.Timer(_LONG, say, (f"{what} ...",))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
