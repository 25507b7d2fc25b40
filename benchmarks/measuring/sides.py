"""The two sides: stock PyTensor, which is the package off, and ours."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import pytensor
from pytensor.compile.executor import Function
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable

import pytensor_fuse


def compiled(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    *,
    ours: bool,
    mode: Mode | str | None = None,
    keep: bool = False,
    native: bool = False,
) -> Function:
    """Compile with the package or without; as if for the first time, unless ``keep`` is set.

    In Numba mode ours leaves the graph to Numba, too, unless ``native`` is set.
    """
    with side(ours=ours, native=native), pytensor_fuse.enabled(keep, "cache"):
        return pytensor.function(list(inputs), list(outputs), mode=mode)


def side(*, ours: bool, native: bool = False) -> AbstractContextManager[None]:
    """The block of one side: the package off, or on.

    Its machine code is off unless ``native`` is set, so that both sides differ in their rewriting
    and not in their compiler.
    """
    if not ours:
        return pytensor_fuse.enabled(False)
    return pytensor_fuse.enabled() if native else pytensor_fuse.enabled(False, "native")


def compiled_by_both(
    inputs: Sequence[Variable], outputs: Sequence[Variable], mode: str
) -> tuple[Function, Function]:
    """Functions of stock and of ours that do not check their arguments."""
    stock, ours = (
        unchecked(compiled(inputs, outputs, ours=ours, mode=mode)) for ours in (False, True)
    )
    return stock, ours


def unchecked(function: Function) -> Function:
    """As PyMC does: the checks of the arguments would hide the kernels of small inputs."""
    function.trust_input = True
    return function
