"""The number of runs of a function, if the code that compiles it reveals the number.

`Variable.eval` runs a compiled function once, and may run it again in a later call; PyMC's `draw`
runs it once for each draw. A linker calls `known_runs` while it links the function.
"""

from __future__ import annotations

import builtins
import sys
import threading
from contextlib import contextmanager
from functools import wraps
from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from pytensor.compile import maker
from pytensor.graph import basic

from pytensor_fuse._pytensor.compat.checks import Fact, Takes, plain_function
from pytensor_fuse._pytensor.patching.patches import PatchOnceImported, ReplacedAttributes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAKER: Final = "pytensor.compile.maker"
_FORWARD: Final = "pymc.sampling.forward"
# The modules of PyMC that have the name `draw`, all for one function.
_DRAWING: Final = (_FORWARD, "pymc.sampling", "pymc")

# Checked when the program imports PyMC, which this package never does.
DRAW_GROUND: Final[tuple[Fact, ...]] = (
    Takes(f"{_FORWARD}:draw", ("vars, draws, random_seed, *, backend, **kwargs",)),
)
DRAW_KNOWN: Final = "6"


class _Known(threading.local):
    n_runs: int | None = None


_known: Final = _Known()


def known_runs() -> int | None:
    """Return how often the function that this thread compiles will run; None if unknown."""
    return _known.n_runs


@contextmanager
def runs_known(n_runs: int | None) -> Iterator[None]:
    """Declare how often the functions that this thread compiles in the block will run.

    Parameters
    ----------
    n_runs
        The number; more runs are allowed, and cost time. None if it is not known.
    """
    before, _known.n_runs = _known.n_runs, n_runs
    try:
        yield
    finally:
        _known.n_runs = before


def _function_once(*args: Any, **kwargs: Any) -> Any:
    with runs_known(1):
        return maker.function(*args, **kwargs)


_stand_in: Final = SimpleNamespace(function=_function_once)


def _import(name: str, *args: Any, **kwargs: Any) -> Any:
    return _stand_in if name == _MAKER else builtins.__import__(name, *args, **kwargs)


def known_evaluations() -> ReplacedAttributes:
    """Return the patch with which `Variable.eval` declares that it compiles for one run.

    Only the `function` that it imports to compile is replaced. Functions that are compiled while
    the compiled function runs have an unknown number of runs.
    """
    stock = plain_function(basic.Variable.eval)
    scope = {**vars(basic), "__builtins__": {**vars(builtins), "__import__": _import}}
    evaluate = FunctionType(
        stock.__code__, scope, stock.__name__, stock.__defaults__, stock.__closure__
    )
    wraps(stock)(evaluate)
    return ReplacedAttributes([basic.Variable], "eval", evaluate)


def evaluated_by(variable: basic.Variable[Any, Any]) -> Any:
    """Return the function that last evaluated a variable; None if there is none.

    Parameters
    ----------
    variable
        The variable.
    """
    functions = getattr(variable, "_fn_cache", {})
    return next(reversed(functions.values()), None)


def known_draws(on_failure: Callable[[str], object]) -> PatchOnceImported:
    """Return the patch with which PyMC's `draw` declares how many draws it compiles for.

    Parameters
    ----------
    on_failure
        Called with the reason if PyMC cannot be patched when it is imported.
    """

    def make() -> _ReplacedDraw:
        stock: Any = sys.modules[_FORWARD].draw

        @wraps(stock)
        def draw(vars: Any, draws: int = 1, *args: Any, **kwargs: Any) -> Any:  # noqa: A002
            # Callers may have kept the replacement after the feature was switched off.
            if not patch.is_applied or not isinstance(draws, int):
                return stock(vars, draws, *args, **kwargs)
            with runs_known(draws):
                return stock(vars, draws, *args, **kwargs)

        return _ReplacedDraw(stock, draw)

    patch = PatchOnceImported(_FORWARD, DRAW_GROUND, make, on_failure, DRAW_KNOWN)
    return patch


class _ReplacedDraw:
    """The patch that replaces `draw` wherever PyMC has it.

    PyMC's packages import the name from the module that defines it, possibly at this moment.

    Parameters
    ----------
    stock, ours
        PyMC's function, and its replacement.
    """

    def __init__(self, stock: Any, ours: Any) -> None:
        self._stock, self._ours = stock, ours

    def prepare(self) -> None:
        """Do nothing: the function is already known."""

    def apply(self) -> None:
        """Replace PyMC's function."""
        self._replace(self._stock, self._ours)

    def undo(self) -> None:
        """Restore PyMC's function, except where something else has replaced ours."""
        self._replace(self._ours, self._stock)

    def holds(self) -> bool:
        """Whether the replacement is in place."""
        return getattr(sys.modules.get(_FORWARD), "draw", None) is self._ours

    def _replace(self, old: Any, new: Any) -> None:
        for name in _DRAWING:
            module = sys.modules.get(name)
            if module is not None and vars(module).get("draw") is old:
                vars(module)["draw"] = new
