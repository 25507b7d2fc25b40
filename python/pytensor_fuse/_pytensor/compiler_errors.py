"""PyTensor's module of errors of compilers, in two halves: what compiles in C alone needs is later.

Whoever links a function asks that module for the error that says that there is no compiler. It also
has the error of a compilation that failed, which derives from that of setuptools, and importing
setuptools takes longer than to link a small graph that is compiled already. So the first class is
there at once, and the file is run when somebody asks for more.
"""

from __future__ import annotations

import ast
import sys
import threading
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any, Final

from pytensor_fuse._forks import hold_in_forks

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

MODULE: Final = "pytensor.link.c.exceptions"
_AT_ONCE: Final = "MissingGXX"

# Re-entrant: running the file may ask for what is in it.
_lock: Final = threading.RLock()
hold_in_forks(_lock)


class DeferredErrors:
    """The patch: the module is there before it is imported, with one class of its own.

    Where it has been imported, there is nothing to save, and nothing is changed.
    """

    def __init__(self) -> None:
        self._spec: ModuleSpec | None = None
        self._module: ModuleType | None = None

    def prepare(self) -> None:
        """Find the file.

        Raises
        ------
        ImportError
            If there is none.
        """
        if MODULE not in sys.modules:
            self._spec = find_spec(MODULE)
            if self._spec is None or self._spec.loader is None or not self._spec.has_location:
                raise ImportError(f"{MODULE} has no file", name=MODULE)

    def apply(self) -> None:
        """Put the module there, if it has not been imported."""
        if self._spec is not None and MODULE not in sys.modules:
            self._module = _first_half(self._spec)
            _put(self._module)

    def undo(self) -> None:
        """Take the module away, if nobody has asked for anything in it.

        Who has a class expects to catch it, and another module would have another one.
        """
        made, self._module = self._module, None
        if made is None or _AT_ONCE in vars(made) or sys.modules.get(MODULE) is not made:
            return
        del sys.modules[MODULE]
        parent, _, name = MODULE.rpartition(".")
        vars(import_module(parent)).pop(name, None)

    def holds(self) -> bool:
        """Whether importing the module takes no time any more."""
        return MODULE in sys.modules


def _put(module: ModuleType) -> None:
    sys.modules[MODULE] = module
    parent, _, name = MODULE.rpartition(".")
    setattr(import_module(parent), name, module)


def _first_half(spec: ModuleSpec) -> ModuleType:
    """Return the module with the class that is needed at once, and what runs the file."""
    module = module_from_spec(spec)
    own = vars(module)
    loader: Any = spec.loader
    tree = ast.parse(loader.get_source(MODULE))
    tree.body = [one for one in tree.body if getattr(one, "name", None) == _AT_ONCE]
    exec(compile(tree, spec.origin or MODULE, "exec"), own)
    first = own.pop(_AT_ONCE)

    def rest(name: str) -> Any:
        if name == _AT_ONCE:
            # That it is there says that somebody has asked for it.
            own[_AT_ONCE] = first
            return first
        # What looks at modules, as copying and inspection do, asks for names that none has.
        if name.startswith("__"):
            raise AttributeError(f"module {MODULE!r} has no attribute {name!r}")
        with _lock:
            if own.get("__getattr__") is rest:
                loader.exec_module(module)
                # Somebody may hold it, and expect to catch it.
                own[_AT_ONCE] = first
                del own["__getattr__"]
        if name in own:
            return own[name]
        raise AttributeError(f"module {MODULE!r} has no attribute {name!r}")

    own["__getattr__"] = rest
    return module
