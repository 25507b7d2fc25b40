"""SciPy's ufuncs of special functions, without the package around them.

`Elemwise` computes gammaln and the like by ufuncs of `scipy.special`, which takes some 70 ms to
import and is of no other use to a graph. Nearly all of these ufuncs are in one extension module,
which needs no other; what the package offers under their names are the same objects.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_loader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pytensor.tensor import elemwise

from pytensor_fuse._pytensor.patching.drop_ins import DropIn

if TYPE_CHECKING:
    from types import ModuleType

    from pytensor_fuse._pytensor.patching.patches import Patch

_PACKAGE: Final = "scipy.special"
_EXTENSION: Final = f"{_PACKAGE}._special_ufuncs"

_stock_import: Final = elemwise.import_func_from_string


def _import_function(func_string: str) -> Any:
    package, _, name = func_string.rpartition(".")
    if package == _PACKAGE and _PACKAGE not in sys.modules:
        found = getattr(_extension(), name, None)
        if isinstance(found, np.ufunc):
            return found
    return _stock_import(func_string)


@cache
def _extension() -> ModuleType | None:
    """Return SciPy's extension module of ufuncs; None if this SciPy has none that loads alone."""
    known = sys.modules.get(_EXTENSION)
    if known is not None:
        return known
    path = _path()
    if path is None:
        return None
    loader = ExtensionFileLoader(_EXTENSION, str(path))
    spec = spec_from_loader(_EXTENSION, loader)
    assert spec is not None
    try:
        module = module_from_spec(spec)
        loader.exec_module(module)
    except Exception:  # Whatever a future SciPy needs; then its package is imported.
        return None
    return module


def _path() -> Path | None:
    scipy = find_spec("scipy")
    for folder in (scipy and scipy.submodule_search_locations) or ():
        for suffix in EXTENSION_SUFFIXES:
            path = Path(folder, "special", f"_special_ufuncs{suffix}")
            if path.is_file():
                return path
    return None


def direct_imports() -> Patch:
    """Return the patch of `import_func_from_string` where `Elemwise` calls it."""
    return DropIn(elemwise, "import_func_from_string", _import_function)


def patch() -> Patch:
    """Return the patch."""
    return direct_imports()
