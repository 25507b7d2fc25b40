"""Compile targets: the compilers of the kernels of a mode, and their limits on operands."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from pytensor.compile.mode import Mode, get_mode
from pytensor.link.basic import JITLinker, Linker, PerformLinker
from pytensor.link.c.basic import CLinker, OpWiseCLinker
from pytensor.link.numba.linker import NumbaLinker
from pytensor.link.vm import VMLinker
from pytensor.tensor.rewriting.elemwise import elemwise_max_operands_fct

from pytensor_fuse._pytensor.compat import versions

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph


# The maximum number of operands of a NumPy ufunc.
_NUMPY_MAX_OPERANDS = 32


class Target(enum.Enum):
    """The compiler of the kernels."""

    STRICT = "strict"
    C = "c"
    PYTHON = "python"
    NUMBA = "numba"


def resolve_target(target: str | Mode | Linker | None, fgraph: FunctionGraph) -> Target:
    """Return the target that the caller names, or that ``fgraph`` is being compiled for.

    Parameters
    ----------
    target
        ``"c"``, ``"python"``, ``"numba"``, a mode, a linker, or None for the mode in which PyTensor
        is compiling ``fgraph`` now. If the target is unknown or none of these, it is ``"strict"``:
        kernels contain only what every target can compile.
    fgraph
        The graph to fuse.

    Raises
    ------
    ValueError
        If ``target`` is another string.
    TypeError
        If ``target`` is none of these.
    """
    if target is None:
        mode = versions.compile_mode(fgraph)
        return Target.STRICT if mode is None else _target_of_linker(get_mode(mode).linker)
    if isinstance(target, str):
        try:
            return Target(target)
        except ValueError:
            order = (Target.C, Target.PYTHON, Target.NUMBA, Target.STRICT)
            names = [known.value for known in order]
            raise ValueError(
                f"unknown target {target!r}; give one of {names}, a Mode or a Linker"
            ) from None
    if isinstance(target, Mode):
        return _target_of_linker(target.linker)
    if isinstance(target, Linker):
        return _target_of_linker(target)
    raise TypeError(
        f"target must be None, a string, a Mode or a Linker, not {type(target).__name__}"
    )


def max_operands(target: Target) -> int:
    """Return the maximum number of inputs plus outputs of a kernel for ``target``.

    PyTensor tests whether there is a C compiler, not whether it is used: its own kernels of more
    operands than a NumPy ufunc allows fail in the Python linker.
    """
    limit = int(elemwise_max_operands_fct(None))
    return min(limit, _NUMPY_MAX_OPERANDS) if target is Target.PYTHON else limit


def is_debugged(fgraph: FunctionGraph) -> bool:
    """Whether DebugMode is compiling ``fgraph``."""
    return hasattr(fgraph, "equivalence_tracker")


def _target_of_linker(linker: Linker) -> Target:
    if isinstance(linker, NumbaLinker):
        return Target.NUMBA
    if isinstance(linker, JITLinker):
        # JAX, PyTorch, MLX and linkers of other packages: these do not run the nodes in Python.
        return Target.STRICT
    if isinstance(linker, PerformLinker):
        return Target.PYTHON
    if isinstance(linker, VMLinker) and not linker.c_thunks:
        return Target.PYTHON
    if isinstance(linker, CLinker | OpWiseCLinker | VMLinker):
        return Target.C
    return Target.STRICT
