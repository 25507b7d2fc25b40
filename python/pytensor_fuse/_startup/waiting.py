"""When features are switched on: once PyTensor is imported, here and in worker processes.

Importing PyTensor reads its configuration and loads NumPy, which fixes ``PYTENSOR_FLAGS``,
``OMP_NUM_THREADS`` and the like. A program that ``python -m pytensor_fuse`` runs may still want to
set them, so nothing here imports PyTensor: if it is not there yet, an import hook registers the
pass as soon as it is, and goes away. The order in which a program imports the two does not matter.

A worker process that `multiprocessing` spawns starts without the state of its parent. It does
unpickle its `Process` object, whose configuration it inherits from the parent's: an entry there
brings along whether the pass was on in the parent when the worker was started.

The environment variable ``PYTENSOR_FUSE`` says what importing the package does, hence also what
``python -m pytensor_fuse`` does; calls to `enable` and `disable` win over it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor_fuse._imports import after_import
from pytensor_fuse._startup.features import (
    native_math_now,
    note_native_math,
    wanted_by_environment,
)
from pytensor_fuse._startup.warning import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Switch(NamedTuple):
    """What switches features on and off, once PyTensor is there.

    Attributes
    ----------
    wanted_now
        Returns the features that are to be on.
    settle
        Has just these features on, and functions of that kind for mathematics.
    """

    wanted_now: Callable[[], frozenset[str]]
    settle: Callable[[Iterable[str], str], None]


_wanted: frozenset[str] = frozenset()
_switch: Switch | None = None


def wait_for_pytensor(switch_on: Callable[[], object]) -> None:
    """Switch the features on that the environment leaves on, now or when PyTensor is imported.

    Parameters
    ----------
    switch_on
        Imports what switches the features that are `wanted`, and registers it.
    """
    global _wanted
    _wanted = wanted_by_environment()
    after_import("pytensor", lambda: _settle(switch_on))
    after_import("multiprocessing.process", _tell_workers)


def register_switch(switch: Switch) -> None:
    """Let features be switched in this process, and told to its workers, by what there is now."""
    global _switch
    _switch = switch


def wanted() -> frozenset[str]:
    """Return the features that are to be on when PyTensor is imported."""
    return _wanted


def _settle(switch_on: Callable[[], object]) -> None:
    # Importing the switch switches the features on. Where its import is under way already, and has
    # just imported PyTensor, this does nothing, and that import will do it.
    try:
        switch_on()
    except Exception as error:  # Importing PyTensor must not fail because of this package.
        warn(
            "pytensor_fuse cannot work with this PyTensor, whose own passes stay: "
            f"{type(error).__name__}: {error}"
        )


class WorkerState:
    """Pickles as "do in this process as in mine": see the module's text."""

    def __reduce__(self) -> tuple[Callable[..., WorkerState], tuple[Any, ...]]:
        on = _wanted if _switch is None else _switch.wanted_now()
        return adopt, (tuple(sorted(on)), native_math_now())


def adopt(wanted: tuple[str, ...], native_math: str) -> WorkerState:
    """Switch features on and off in a worker process, as they are in its parent.

    Returns
    -------
    WorkerState
        What takes the state on to the workers of this worker.
    """
    global _wanted
    _wanted = frozenset(wanted)
    note_native_math(native_math)
    if _switch is not None:
        _switch.settle(_wanted, native_math)
    return WorkerState()


def _tell_workers() -> None:
    process: Any = import_module("multiprocessing.process").current_process()
    # Every process takes a copy of its parent's configuration.
    process._config["pytensor_fuse"] = WorkerState()  # noqa: SLF001 - there is no other way
