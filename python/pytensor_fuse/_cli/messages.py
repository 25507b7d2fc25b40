"""What is said on the error stream."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

# A step that takes longer, in seconds, is named; on a terminal each is.
_LONG = 2.0


def say(message: str) -> None:
    """Write a line that tells who says it."""
    write_error(f"pytensor_fuse: {message}\n")


def fail(message: str, code: int) -> NoReturn:
    """Say what is wrong, and end the process."""
    say(message)
    sys.exit(code)


def write_error(text: str) -> None:
    """Write a text, if there is an error stream."""
    # A program may have closed it, or put nothing in its place.
    if sys.stderr is not None and not sys.stderr.closed:
        sys.stderr.write(text)
        sys.stderr.flush()


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    """Say what is being done, on a terminal at once, otherwise only if it takes long."""
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
