"""LLVM through llvmlite: host processor, object code from text, loading of object code."""

from __future__ import annotations

import threading
from contextlib import nullcontext, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import llvmlite
import llvmlite.binding as llvm

from pytensor_fuse._forks import hold_in_forks
from pytensor_fuse._native.emission.machine import Machine
from pytensor_fuse._native.emission.module import ENTRY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

# Higher levels gain less than 7 % on the loops of programs.
_LEVEL: Final = 2

_lock: Final = threading.Lock()
hold_in_forks(_lock)


@cache
def _initialized() -> None:
    # Newer versions initialize themselves, and raise an exception here.
    with suppress(RuntimeError):
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def host() -> tuple[str, str, str]:
    """Return the host's triple, processor and features."""
    _initialized()
    features = llvm.get_host_cpu_features()
    return (llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten())


def _new_target_machine(*, is_loaded_here: bool = True) -> Any:
    triple, processor, features = host()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=processor,
        features=features,
        opt=_LEVEL,
        reloc="default" if is_loaded_here else "pic",
        codemodel="jitdefault" if is_loaded_here else "default",
        jit=is_loaded_here,
    )


@cache
def _target_machine() -> Any:
    """Return the target machine for object code, shared by all calls; engines own theirs."""
    return _new_target_machine()


@cache
def host_machine() -> Machine:
    """Return the properties of the host that the emission of loops depends on."""
    _initialized()
    has = llvm.get_host_cpu_features()
    if has.get("avx512f") and has.get("avx512vl") and has.get("avx512dq") and has.get("avx512bw"):
        return Machine(512, has_masks=True, has_fma=True)
    if has.get("avx2"):
        return Machine(256, has_masks=True, has_fma=bool(has.get("fma")))
    return Machine(128, has_masks=False, has_fma=_always_has_fma())


def _always_has_fma() -> bool:
    triple: str = llvm.get_process_triple()
    return triple.startswith(("aarch64", "arm64"))


def versions() -> tuple[str, ...]:
    """Return the dependencies of the code besides its text: LLVM's version and the processor."""
    return (llvmlite.__version__, ".".join(map(str, llvm.llvm_version_info)), *host())


def _module(text: str) -> Any:
    module = llvm.parse_assembly(text)
    module.verify()
    if "alwaysinline" in text:
        _copy_into_callers(module)
    return module


def assembly(text: str) -> str:
    """Return the assembly of a module, with LLVM's comments.

    Raises
    ------
    RuntimeError
        If LLVM rejects the text.
    """
    with _lock:
        machine = _new_target_machine()
        machine.set_asm_verbosity(True)
        found: str = machine.emit_assembly(_module(text))
        return found


def object_code(
    text: str, meanwhile: Callable[[], AbstractContextManager[object]] = nullcontext
) -> bytes:
    """Return the object code of a module.

    Parameters
    ----------
    text
        The LLVM text of the module.
    meanwhile
        A function that returns a context for the time in which LLVM works without the lock of
        Python's interpreter. No lock is held where the context ends, which may wait for a thread.

    Raises
    ------
    RuntimeError
        If LLVM rejects the text.
    """
    with _lock:
        machine, module = _target_machine(), _module(text)
    with meanwhile(), _lock:
        code: bytes = machine.emit_object(module)
        # Disposal takes a lock of llvmlite, which must be free in a fork.
        del module
    return code


def library_object(text: str) -> bytes:
    """Return the object code of a module for a shared library on this machine.

    Raises
    ------
    RuntimeError
        If LLVM rejects the text.
    """
    with _lock:
        code: bytes = _new_target_machine(is_loaded_here=False).emit_object(_module(text))
        return code


def _copy_into_callers(module: Any) -> None:
    """Inline the functions marked ``alwaysinline``, and change nothing else."""
    machine = _target_machine()
    options = llvm.create_pipeline_tuning_options(speed_level=0)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.run(module, llvm.create_pass_builder(machine, options))


class Code:
    """Loaded object code; the object must outlive every call of its function.

    Attributes
    ----------
    address
        The address of the function.
    """

    def __init__(
        self, code: bytes, externals: Iterable[tuple[str, int]] = (), function: str = ENTRY
    ) -> None:
        """Load object code.

        Parameters
        ----------
        code
            The object code.
        externals
            The external symbols of the code, and their addresses.
        function
            The name of the function.
        """
        with _lock:
            for symbol, address in externals:
                llvm.add_symbol(symbol, address)
            self._engine = llvm.create_mcjit_compiler(
                llvm.parse_assembly(""), _new_target_machine()
            )
            self._engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(code))
            self._engine.finalize_object()
            self.address: int = self._engine.get_function_address(function)

    def address_of_data(self, name: str) -> int:
        """Return the address of a global variable."""
        with _lock:
            address: int = self._engine.get_global_value_address(name)
            return address
