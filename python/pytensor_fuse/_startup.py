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
from importlib.abc import Loader, MetaPathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

VARIABLE = "PYTENSOR_FUSE"
_ON = ("1", "true", "on", "yes")
_OFF = ("0", "false", "off", "no")

_REGISTRATION = "pytensor_fuse._registration"

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


def after_import(name: str, callback: Callable[[], object]) -> None:
    if name in sys.modules:
        callback()
    else:
        sys.meta_path.insert(0, _ImportHook(name, callback))


class _ImportHook(MetaPathFinder):
    """Finds one module as the other finders do, and calls back once it has been imported."""

    def __init__(self, name: str, callback: Callable[[], object]) -> None:
        self._name = name
        self._callback = callback

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _HookedLoader(spec.loader, self._imported)
                return spec
        return None

    def _imported(self) -> None:
        # Not removed before: an import that fails may be tried again.
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            self._callback()


class _HookedLoader(Loader):
    """Does as another loader, then calls back."""

    def __init__(self, loader: Loader, imported: Callable[[], None]) -> None:
        self._loader = loader
        self._imported = imported

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module keeps its own loader: those who look for its source or data ask that.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._imported()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
