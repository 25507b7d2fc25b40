"""Faster compiles for PyTensor: fusion, merging and joins, with a core in Rust.

>>> import pytensor
>>> import pytensor_fuse
>>> import pytensor.tensor as pt
>>> x = pt.vector("x")
>>> f = pytensor.function([x], pt.exp(x) + pt.sin(x))  # fused by this package

Importing the package replaces passes of PyTensor by its own. `enable`, `disable` and `enabled`
switch them, ``PYTENSOR_FUSE=0`` in the environment prevents it, and `status` lists the features.

`explain` says what the package did to a function and why it did not do more, `audit` what the
function costs, and `trace` what its compilation costs. `plan_fusion` shows the kernels that fusion
would make of a graph, `freeze` makes a graph a value that can be compared, and `info` says what a
bug report needs. Submodules: `cache`, `exceptions`, `graph`, `linalg`, `native` and `reports`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from pytensor_fuse._core import __version__
from pytensor_fuse._startup import waiting

if TYPE_CHECKING:
    from pytensor_fuse import cache, exceptions, graph, linalg, native, reports
    from pytensor_fuse._activation.switch import disable, enable, enabled, status
    from pytensor_fuse._audit.audit import audit
    from pytensor_fuse._explain import explain
    from pytensor_fuse._identity.frozen import freeze
    from pytensor_fuse._info import info
    from pytensor_fuse._plan.plan import plan_fusion
    from pytensor_fuse._trace.trace import trace

__all__ = [
    "__version__",
    "audit",
    "cache",
    "disable",
    "enable",
    "enabled",
    "exceptions",
    "explain",
    "freeze",
    "graph",
    "info",
    "linalg",
    "load_ipython_extension",
    "native",
    "plan_fusion",
    "reports",
    "status",
    "trace",
    "unload_ipython_extension",
]

_SUBMODULES = ("cache", "exceptions", "graph", "linalg", "native", "reports")

# These modules import PyTensor, which importing the package must not do: see `_startup`.
_HOMES = {
    "audit": "_audit.audit",
    **dict.fromkeys(("disable", "enable", "enabled", "status"), "_activation.switch"),
    "explain": "_explain",
    "freeze": "_identity.frozen",
    "info": "_info",
    "plan_fusion": "_plan.plan",
    "trace": "_trace.trace",
}


def __getattr__(name: str) -> object:
    value: object
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    elif name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    else:
        from pytensor_fuse._old_names import OLD_NAMES, old_value

        if name not in OLD_NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = old_value(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def load_ipython_extension(ipython: object) -> None:
    """Switch all features on; called by ``%load_ext pytensor_fuse``.

    Parameters
    ----------
    ipython : InteractiveShell
        The calling shell; unused.
    """
    from pytensor_fuse._activation.switch import enable

    enable()


def unload_ipython_extension(ipython: object) -> None:
    """Switch all features off; called by ``%unload_ext pytensor_fuse``.

    Parameters
    ----------
    ipython : InteractiveShell
        The calling shell; unused.
    """
    from pytensor_fuse._activation.switch import disable

    disable()


waiting.wait_for_pytensor(lambda: import_module("pytensor_fuse._activation.switch"))
