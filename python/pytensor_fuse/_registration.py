"""Switching PyTensor's registered fusion pass between its own and ours.

The registered rewriter stays the same object; its class changes. PyTensor's rewrite database, and
every query of it that someone has kept (a `SequentialGraphRewriter`, however nested), hold that
object, so both follow, those made before the switch as well as those made after it. One assignment
does it, which is atomic for other threads and for `fork`, and undoing it leaves nothing behind:
names, tags, their order and the position are never touched.

The alternatives fall short. `register(..., overwrite_existing=True)` does not reach kept queries,
moves the entry to the end of each of its tags (the order of which decides the order of rewriters in
a database without positions), and is several steps, between which another thread's query finds no
fusion at all. Patching `FusionOptimizer.apply` would also change rewriters that users made
themselves, and subclasses.

The switch is one per process. `enable` and `disable` set it; ``with enabled(...)`` blocks nest,
also across threads: the latest block that is still open decides, and within a block `enable` and
`disable` hold until its end.
"""

from __future__ import annotations

import os
import threading
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

from pytensor.compile.mode import optdb
from pytensor.tensor.rewriting.elemwise import FusionOptimizer

from pytensor_fuse import _startup
from pytensor_fuse._errors import RegistrationError
from pytensor_fuse._rewriter import fuse_profiled
from pytensor_fuse._signatures import compare_exactly

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.fg import FunctionGraph

_SEQUENCE = "elemwise_fusion"
_ENTRY = "composite_elemwise_fusion"


class FusionRewriter(FusionOptimizer):
    """PyTensor's fusion pass, done by this package.

    It differs from its base class in what `apply` runs, and has no state of its own: an instance of
    the one can become an instance of the other.
    """

    def apply(self, fgraph: FunctionGraph) -> tuple[Any, ...]:
        """Fuse the Elemwise nodes of ``fgraph``, and return the profile of that.

        Raises
        ------
        FusionError
            If the pass failed; ``fgraph`` is then as it was.
        """
        return self, *fuse_profiled(fgraph, type(self).__name__)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        # A copy of the registered pass, in this process or another, is the pass registered there:
        # it follows `enable` and `disable`.
        if self is registered_rewriter():
            return registered_rewriter, ()
        return super().__reduce_ex__(protocol)


# PyTensor's databases keep a rewriter under the name of its class, and look for it there when it is
# replaced; profiles and summaries print it.
FusionRewriter.__name__ = FusionOptimizer.__name__


def registered_rewriter() -> object | None:
    """Return what PyTensor has registered as its fusion pass, or None."""
    # Asking a database for a name that it does not have would add the name to it.
    if _SEQUENCE not in optdb or _ENTRY not in optdb[_SEQUENCE]:
        return None
    rewriter: object = optdb[_SEQUENCE][_ENTRY]
    return rewriter


@dataclass(eq=False)
class _Setting:
    on: bool


# Guards the two lists below.
_lock = threading.RLock()
# The setting outside any `with enabled(...)`, then those of the open blocks. The last one decides.
_settings = [_Setting(on=False)]
# The rewriters that were the registered one when the pass was switched on: as a rule, one.
_switched: list[FusionOptimizer] = []

if hasattr(os, "register_at_fork"):
    # Another thread must not be halfway through a switch when the process forks.
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


def enable() -> None:
    """Let PyTensor fuse with this package, in every mode that fuses.

    Holds for `Mode` objects, models and rewriters that were made before, too. Calling it again
    changes nothing.

    Raises
    ------
    RegistrationError
        If PyTensor's fusion pass is not its own, because another package has replaced or removed
        it. Nothing is changed.
    """
    with _lock:
        _find_stock()
        _settings[-1].on = True
        _switch()


def disable() -> None:
    """Give PyTensor its own fusion pass back, exactly as it was.

    Holds for `Mode` objects, models and rewriters that were made before, too. Calling it again
    changes nothing.
    """
    with _lock:
        _settings[-1].on = False
        _switch()


def is_enabled() -> bool:
    """Whether PyTensor fuses with this package."""
    return type(registered_rewriter()) is FusionRewriter


@contextmanager
def enabled(flag: bool = True) -> Iterator[None]:
    """Switch the pass on (or off, if ``flag`` is false) for a block or a function.

    The state before is restored at the end, also after an exception. The switch is one for the
    whole process: other threads see it.

    Raises
    ------
    RegistrationError
        As `enable` does.

    Examples
    --------
    >>> import pytensor_fuse
    >>> with pytensor_fuse.enabled(False):
    ...     pytensor_fuse.is_enabled()
    False
    """
    setting = _Setting(bool(flag))
    with _lock:
        if setting.on:
            _find_stock()
        _settings.append(setting)
        _switch()
    try:
        yield
    finally:
        with _lock:
            # Not always the last one: blocks in different threads may overlap.
            _settings.remove(setting)
            _switch()


def settle(on: bool) -> None:
    """Switch the pass on or off where no caller could handle an error: warn instead."""
    if not on:
        disable()
        return
    try:
        enable()
    except RegistrationError as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=2)


def _find_stock() -> None:
    """Remember the registered rewriter as one to switch, if it is PyTensor's own."""
    rewriter: Any = registered_rewriter()
    if rewriter is None:
        raise RegistrationError(
            f"PyTensor has no fusion pass {_ENTRY!r} in its sequence {_SEQUENCE!r}, so there is "
            "nothing that pytensor_fuse could take the place of; find what removed it"
        )
    kind = type(rewriter)
    if kind is not FusionOptimizer and kind is not FusionRewriter:
        raise RegistrationError(
            f"PyTensor's fusion pass {_ENTRY!r} is a {kind.__module__}.{kind.__qualname__}, not "
            "its own: another package has replaced it. pytensor_fuse leaves it alone; to use "
            "pytensor_fuse, do without that package"
        )
    if not any(rewriter is known for known in _switched):
        _switched.append(rewriter)


def _switch() -> None:
    """Put the setting that decides into effect."""
    for rewriter in _switched:
        rewriter.__class__ = FusionRewriter if _settings[-1].on else FusionOptimizer
    compare_exactly(_settings[-1].on)


settle(_startup.wanted())
