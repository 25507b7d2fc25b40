"""When the pass is switched on: once PyTensor is imported, here and in worker processes.

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

import os
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytensor_fuse._imports import after_import

if TYPE_CHECKING:
    from collections.abc import Callable

VARIABLE = "PYTENSOR_FUSE"
_ON = ("1", "true", "on", "yes")
_OFF = ("0", "false", "off", "no")

_REGISTRATION = "pytensor_fuse._activation.registration"

_wanted = False


def start() -> None:
    """Register the pass, unless the environment says no, now or when PyTensor is imported."""
    global _wanted
    _wanted = on_by_environment()
    after_import("pytensor", _register)
    after_import("multiprocessing.process", _tell_workers)


def wanted() -> bool:
    """Whether the pass is to be on when PyTensor is imported."""
    return _wanted


def on_by_environment() -> bool:
    """Whether ``PYTENSOR_FUSE`` leaves the pass on, as it does when it is unset or empty.

    Warns
    -----
    RuntimeWarning
        If it has a value that means neither on nor off; the pass is then on.
    """
    value = os.environ.get(VARIABLE, "")
    word = value.strip().lower()
    if word in _OFF:
        return False
    if word and word not in _ON:
        warnings.warn(
            f"{VARIABLE}={value!r} is neither on ({', '.join(_ON)}) nor off ({', '.join(_OFF)}); "
            "the fusion pass of pytensor_fuse is on",
            RuntimeWarning,
            stacklevel=2,
        )
    return True


def _register() -> None:
    # Importing the module registers the pass. Where its import is under way already, and has just
    # imported PyTensor, this does nothing, and that import will register it.
    try:
        import_module(_REGISTRATION)
    except ImportError as error:
        warnings.warn(
            f"pytensor_fuse cannot work with this PyTensor, whose own fusion stays: {error}",
            RuntimeWarning,
            stacklevel=2,
        )


class WorkerState:
    """Pickles as "do in this process as in mine": see the module's text."""

    def __reduce__(self) -> tuple[Callable[[bool], WorkerState], tuple[bool]]:
        registration = sys.modules.get(_REGISTRATION)
        on = _wanted if registration is None else registration.is_enabled()
        return adopt, (on,)


def adopt(on: bool) -> WorkerState:
    """Switch the pass on or off in a worker process, as it is in its parent.

    Returns
    -------
    WorkerState
        What takes the state on to the workers of this worker.
    """
    global _wanted
    _wanted = on
    registration = sys.modules.get(_REGISTRATION)
    if registration is not None:
        registration.settle(on)
    return WorkerState()


def _tell_workers() -> None:
    process: Any = import_module("multiprocessing.process").current_process()
    # Every process takes a copy of its parent's configuration.
    process._config["pytensor_fuse"] = WorkerState()
