"""Blocks that set every feature: all are on except those given as False."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytensor_fuse


def units(
    accelerators: bool | Collection[str] = True, **features: bool
) -> tuple[list[str], list[str]]:
    """The features and accelerators that are on, and those that are off."""
    status = pytensor_fuse.status()
    assert set(features) <= set(status), features
    on = {name: features.get(name, True) for name in status if name != "accelerators"}
    for name in status["accelerators"].parts:
        is_on = accelerators if isinstance(accelerators, bool) else name in accelerators
        on[f"accelerators:{name}"] = is_on
    if not isinstance(accelerators, bool):
        assert set(accelerators) <= set(status["accelerators"].parts), accelerators
    return [name for name in on if on[name]], [name for name in on if not on[name]]


@contextmanager
def switched(
    flag: bool = True, *, native_math: str | None = None, **features: Any
) -> Iterator[None]:
    """Switch exactly these features on; or switch these off, if the flag is False."""
    on, off = units(**features)
    with ExitStack() as blocks:
        for is_on, names in ((True, on), (False, off)) if flag else ((False, on),):
            if names:
                block = pytensor_fuse.enabled(is_on, *names, native_math=native_math)
                blocks.enter_context(block)
        yield


def switch_on(**features: Any) -> None:
    """Switch on exactly these features."""
    on, off = units(**features)
    if on:
        pytensor_fuse.enable(*on)
    if off:
        pytensor_fuse.disable(*off)


def switch_off(**features: Any) -> None:
    """Switch off these features."""
    on, _ = units(**features)
    if on:
        pytensor_fuse.disable(*on)
