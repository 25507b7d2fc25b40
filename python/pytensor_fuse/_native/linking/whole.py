"""Recognition of functions that are machine code as a whole, or run in Python instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor_fuse._native.linking.python_runs import PythonRun
from pytensor_fuse._native.linking.thunks import NativeThunk
from pytensor_fuse._native.linking.verification import VerifiedThunk

if TYPE_CHECKING:
    from pytensor.compile.executor import Function


def native_thunk_of(function: Function) -> NativeThunk | None:
    """Return the thunk of a function, if all of it is machine code."""
    vm: Any = function.vm
    if isinstance(vm, VerifiedThunk):
        vm = vm.thunk
    return vm if isinstance(vm, NativeThunk) else None


def python_run_of(function: Function) -> PythonRun | None:
    """Return the thunk of a function that runs in Python until Numba compiles it."""
    vm: Any = function.vm
    return vm if isinstance(vm, PythonRun) and vm.compiled is None else None
