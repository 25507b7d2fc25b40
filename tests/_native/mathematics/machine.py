"""Compile the functions with LLVM, and run them on arrays."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import time

import llvmlite.binding as llvm
import numpy as np

from pytensor_fuse._native.mathematics import FUNCTIONS, Target, definitions, symbol
from pytensor_fuse._native.mathematics.text import type_name

DTYPES = {"f64": np.float64, "f32": np.float32}


@functools.cache
def initialize() -> None:
    """Initialize LLVM."""
    # Newer versions of LLVM's bindings initialize it themselves, and raise an exception here.
    with contextlib.suppress(RuntimeError):
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def loop(name: str, element: str, lanes: int) -> str:
    """Return a function that applies another one to arrays of full vectors."""
    count = FUNCTIONS[name].arguments
    one = type_name(element, lanes)
    size = DTYPES[element]().itemsize
    loads = [
        f"  %p{k} = getelementptr {type_name(element, 1)}, ptr %in{k}, i64 %i\n"
        f"  %x{k} = load {one}, ptr %p{k}, align {size}"
        for k in range(count)
    ]
    parameters = "".join(f"ptr %in{k}, " for k in range(count))
    arguments = ", ".join(f"{one} %x{k}" for k in range(count))
    return "\n".join(
        [
            f"define void @run({parameters}ptr %out, i64 %n) {{",
            "entry:",
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [0, %entry], [%next, %loop]",
            *loads,
            f"  %y = call {one} @{symbol(name, element, lanes)}({arguments})",
            f"  %q = getelementptr {type_name(element, 1)}, ptr %out, i64 %i",
            f"  store {one} %y, ptr %q, align {size}",
            f"  %next = add i64 %i, {lanes}",
            "  %more = icmp slt i64 %next, %n",
            "  br i1 %more, label %loop, label %done",
            "done:",
            "  ret void",
            "}",
        ]
    )


class Compiled:
    """A function of arrays, with a number of lanes; its module may have other functions, too."""

    def __init__(
        self,
        name: str,
        element: str,
        lanes: int,
        *,
        fma: bool,
        inline: bool,
        beside: tuple[int, ...] = (),
    ) -> None:
        initialize()
        self.lanes = lanes
        self.dtype = DTYPES[element]
        self.count = FUNCTIONS[name].arguments
        begin = time.perf_counter()
        requests = [(name, element, one) for one in (lanes, *beside)]
        text = definitions(requests, Target(fma=fma), inline=inline)
        self.text = text + loop(name, element, lanes)
        self.seconds_writing = time.perf_counter() - begin
        begin = time.perf_counter()
        module = llvm.parse_assembly(self.text)
        module.verify()
        self.seconds_parsing = time.perf_counter() - begin
        features = llvm.get_host_cpu_features()
        if not fma:
            for feature in list(features):
                if "fma" in feature:
                    features[feature] = False
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=2, jit=True
        )
        if inline:
            builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
            passes = llvm.create_new_module_pass_manager()
            passes.add_always_inliner_pass()
            passes.run(module, builder)
        begin = time.perf_counter()
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        self.seconds_generating = time.perf_counter() - begin
        self.assembly = lambda: machine.emit_assembly(module)
        pointers = [ctypes.c_void_p] * (self.count + 1)
        self.function = ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64)(
            self.engine.get_function_address("run")
        )

    def __call__(self, *arguments: np.ndarray) -> np.ndarray:
        arrays = [np.ascontiguousarray(a, dtype=self.dtype).ravel() for a in arguments]
        size = len(arrays[0])
        if size == 0:
            return np.empty(0, self.dtype)
        padding = -size % self.lanes
        if padding:
            arrays = [np.concatenate([a, np.ones(padding, self.dtype)]) for a in arrays]
        out = np.empty(size + padding, self.dtype)
        self.run(*arrays, out)
        return out[:size].reshape(np.shape(arguments[0]))

    def run(self, *arrays: np.ndarray) -> None:
        """Apply the function to arrays of full vectors; the last array receives the result."""
        self.function(*(a.ctypes.data for a in arrays), len(arrays[-1]))


@functools.cache
def compiled(
    name: str, element: str = "f64", lanes: int = 8, *, fma: bool = True, inline: bool = True
) -> Compiled:
    return Compiled(name, element, lanes, fma=fma, inline=inline)
