"""Import hooks that call back after the import of a module, without importing it themselves."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def after_import(name: str, callback: Callable[[], object]) -> Callable[[], object]:
    """Call ``callback`` now if the module is imported already, else right after its import.

    Returns
    -------
    callable
        Cancels the wait, if it has not ended.
    """
    hook = _ImportHook(name, callback)
    if name in sys.modules:
        callback()
    else:
        sys.meta_path.insert(0, hook)
    return hook.remove


# Neither class derives from one of `importlib.abc`: nothing requires it, and loading that module
# takes a fifth of this package's import time.
class _ImportHook:
    """Meta path finder that delegates for one module and calls back after its import."""

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
        finders = list(sys.meta_path)
        # Only finders after this one are asked, since others may wait for the same module: each
        # hook asks down the list and wraps the spec that it gets, so the first to wait is called
        # first.
        for finder in finders[finders.index(self) + 1 if self in finders else 0 :]:
            if not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = cast("Loader", _HookedLoader(spec.loader, self._imported))
                return spec
        return None

    def remove(self) -> bool:
        """Stop waiting; return whether this hook was waiting."""
        is_waiting = self in sys.meta_path
        if is_waiting:
            sys.meta_path.remove(self)
        return is_waiting

    def _imported(self) -> None:
        # The hook stays until here, since a failed import may be retried.
        if self.remove():
            self._callback()


class _HookedLoader:
    """Loader that delegates to another one and calls back after executing the module."""

    def __init__(self, loader: Loader, imported: Callable[[], None]) -> None:
        self._loader = loader
        self._imported = imported

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module keeps its own loader, which finds its source and data.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._imported()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
