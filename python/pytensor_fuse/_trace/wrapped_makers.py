"""Wrapped methods of function makers, which record each call: its time, and inner items."""

from __future__ import annotations

from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pytensor.compile.maker import FunctionMaker

from pytensor_fuse._cache.store.origin import origin_of
from pytensor_fuse._native.linking.thunks import NativeThunk
from pytensor_fuse._trace.frames import CallFrame
from pytensor_fuse._trace.recorders import open_recorders
from pytensor_fuse._trace.running import running

if TYPE_CHECKING:
    from collections.abc import Callable

    Method = Callable[..., Any]


class _Calls(WeakKeyDictionary[FunctionMaker, CallFrame]):
    def __reduce__(self) -> str:
        # Pickles by value of wrapped methods refer to this by name.
        return "_calls"


# The frames of makers that may still link.
_calls = _Calls()


def forget_calls() -> None:
    """Drop the frames of all makers, which are not expected to link any more."""
    _calls.clear()


def wrapped_init(init: Method) -> Method:
    """Wrap the constructor of a class of makers in a frame."""

    @wraps(init)
    def traced(self: FunctionMaker, *args: Any, **kwargs: Any) -> None:
        parent = running.frame
        # A subclass's constructor calls that of its base class on the same maker.
        if (not open_recorders and parent is None) or self in _calls:
            init(self, *args, **kwargs)
            return
        frame = CallFrame(parent, kwargs.get("name"))
        _calls[self] = running.frame = frame
        error: BaseException | None = None
        try:
            init(self, *args, **kwargs)
        except BaseException as raised:
            error = raised
            raise
        finally:
            running.frame = parent
            origin = origin_of(getattr(self, "fgraph", None))
            frame.cached = None if origin is None else origin.made
            frame.end(error)
            error = None
            open_recorders.take(frame)

    return traced


def wrapped_create(create: Method) -> Method:
    """Wrap the linking of a maker's function, which is part of the call that made the maker."""

    @wraps(create)
    def traced(self: FunctionMaker, *args: Any, **kwargs: Any) -> Any:
        frame = _calls.pop(self, None)
        if frame is None:
            return create(self, *args, **kwargs)
        outer, running.frame = running.frame, frame
        start = perf_counter()
        try:
            function = create(self, *args, **kwargs)
            frame.native = isinstance(getattr(function, "vm", None), NativeThunk)
            return function
        except BaseException as raised:
            frame.fail(raised)
            raise
        finally:
            running.frame = outer
            frame.add_linking(perf_counter() - start)

    return traced
