"""Deferred activation: features are switched on after PyTensor's import, also in workers.

Importing PyTensor reads its configuration and loads NumPy, which fixes ``PYTENSOR_FLAGS``,
``OMP_NUM_THREADS`` and the like. A program that ``python -m pytensor_fuse`` runs may still want to
set them, so nothing here imports PyTensor: if it is not imported yet, an import hook switches the
features on right after its import, and is then removed. A program may import the two in any order.

A worker process that `multiprocessing` spawns starts without the state of its parent. However, it
unpickles its `Process` object, which carries a copy of the parent's process configuration: an entry
there transfers the features that were on in the parent when the worker was started.

The environment variable ``PYTENSOR_FUSE`` selects the features that importing the package, and so
``python -m pytensor_fuse``, switches on; calls to `enable` and `disable` take precedence over it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytensor_fuse._imports import after_import
from pytensor_fuse._startup.features import (
    native_math_now,
    note_native_math,
    wanted_by_environment,
)
from pytensor_fuse._startup.warning import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Switch:
    """Callbacks that switch features on and off once PyTensor is imported.

    Attributes
    ----------
    wanted_now
        Returns the features that should be on.
    settle
        Switches exactly these features on, and selects the kind of mathematical functions.
    """

    # Making a named tuple takes as long as the rest of this package's startup.
    __slots__ = ("settle", "wanted_now")

    def __init__(
        self,
        wanted_now: Callable[[], frozenset[str]],
        settle: Callable[[Iterable[str], str], None],
    ) -> None:
        self.wanted_now = wanted_now
        self.settle = settle


_wanted: frozenset[str] = frozenset()
_switch: Switch | None = None


def wait_for_pytensor(switch_on: Callable[[], object]) -> None:
    """Switch on the features that the environment selects, now or after PyTensor's import.

    Parameters
    ----------
    switch_on
        Imports the module that switches on the `wanted` features and registers its `Switch`.
    """
    global _wanted
    _wanted = wanted_by_environment()
    after_import("pytensor", lambda: _settle(switch_on))
    after_import("multiprocessing.process", _tell_workers)


def register_switch(switch: Switch) -> None:
    """Set the switch that changes features in this process and reports them to its workers."""
    global _switch
    _switch = switch


def wanted() -> frozenset[str]:
    """Return the features that should be on once PyTensor is imported."""
    return _wanted


def _settle(switch_on: Callable[[], object]) -> None:
    # Importing the switch switches the features on. If that import is already under way and has
    # just imported PyTensor, this call does nothing, and that import switches them on.
    try:
        switch_on()
    except Exception as error:  # Importing PyTensor must not fail because of this package.
        warn(
            "pytensor_fuse cannot work with this PyTensor, which keeps its own passes: "
            f"{type(error).__name__}: {error}"
        )


class WorkerState:
    """Marker whose unpickling switches features as in the pickling process: see the module."""

    def __reduce__(self) -> tuple[Callable[..., WorkerState], tuple[Any, ...]]:
        on = _wanted if _switch is None else _switch.wanted_now()
        return adopt, (tuple(sorted(on)), native_math_now())


def adopt(wanted: tuple[str, ...], native_math: str) -> WorkerState:
    """Switch features on and off in a worker process to match its parent.

    Returns
    -------
    WorkerState
        Transfers the state to the workers of this worker.
    """
    global _wanted
    _wanted = frozenset(wanted)
    note_native_math(native_math)
    if _switch is not None:
        _switch.settle(_wanted, native_math)
    return WorkerState()


def _tell_workers() -> None:
    process: Any = import_module("multiprocessing.process").current_process()
    # Each process inherits a copy of its parent's configuration.
    process._config["pytensor_fuse"] = WorkerState()  # noqa: SLF001 - there is no other way
