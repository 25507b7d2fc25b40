"""Machine code for the tests: LLVM text written by hand, compiled in this process."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import llvmlite.binding as llvm
import numpy as np

from pytensor_fuse._core import NativeFunction

#: The interface: inputs, lengths, constants, context, and functions that allocate memory.
PRELUDE = """
%Context = type { ptr, ptr, [8 x i64] }

define private ptr @allocate(ptr %context, i64 %output, ptr %dims) {
  %place = getelementptr %Context, ptr %context, i32 0, i32 0
  %function = load ptr, ptr %place
  %data = call ptr %function(ptr %context, i64 %output, ptr %dims)
  ret ptr %data
}

define private ptr @scratch(ptr %context, i64 %bytes) {
  %place = getelementptr %Context, ptr %context, i32 0, i32 1
  %function = load ptr, ptr %place
  %data = call ptr %function(ptr %context, i64 %bytes)
  ret ptr %data
}

define private void @detail(ptr %context, i64 %index, i64 %value) {
  %place = getelementptr %Context, ptr %context, i32 0, i32 2, i64 %index
  store i64 %value, ptr %place
  ret void
}
"""


@dataclass(eq=False)
class Code:
    """Machine code, and the objects that keep it alive."""

    engine: llvm.ExecutionEngine = field(repr=False)
    address: int


@cache
def target_machine() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(opt=2)


@cache
def compiled(body: str) -> Code:
    """Compile a module that defines `@entry`."""
    module = llvm.parse_assembly(PRELUDE + body)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, target_machine())
    engine.finalize_object()
    return Code(engine, engine.get_function_address("entry"))


ENTRY = "define i64 @entry(ptr %inputs, ptr %dims, ptr %constants, ptr %context)"


class CodeError(Exception):
    """A failure that the machine code reports."""


def native(body, inputs, outputs, constants=(), **more):
    """Return a function with these declarations."""
    code = compiled(body)
    fail = more.pop("fail", CodeError)
    return NativeFunction(code.address, code, inputs, constants, outputs, fail, **more)


#: y[i] = 2 x[i] for the elements of x, whatever its number of dimensions.
DOUBLED = (
    ENTRY
    + """ {
  %x = load ptr, ptr %inputs
  %y = call ptr @allocate(ptr %context, i64 0, ptr %dims)
  %full = icmp eq ptr %y, null
  br i1 %full, label %none, label %start
none:
  ret i64 -1
start:
  br label %axes
axes:
  %axis = phi i64 [ 0, %start ], [ %axis1, %next ]
  %size = phi i64 [ 1, %start ], [ %size1, %next ]
  %more = icmp slt i64 %axis, NDIM
  br i1 %more, label %next, label %head
next:
  %at = getelementptr i64, ptr %dims, i64 %axis
  %length = load i64, ptr %at
  %size1 = mul i64 %size, %length
  %axis1 = add i64 %axis, 1
  br label %axes
head:
  %i = phi i64 [ 0, %axes ], [ %i1, %body ]
  %go = icmp slt i64 %i, %size
  br i1 %go, label %body, label %done
body:
  %from = getelementptr double, ptr %x, i64 %i
  %to = getelementptr double, ptr %y, i64 %i
  %value = load double, ptr %from
  %twice = fadd double %value, %value
  store double %twice, ptr %to
  %i1 = add i64 %i, 1
  br label %head
done:
  ret i64 0
}"""
)

#: Adds 1 to the first element of the only input.
INCREMENTED = (
    ENTRY
    + """ {
  %x = load ptr, ptr %inputs
  %value = load double, ptr %x
  %more = fadd double %value, 1.0
  store double %more, ptr %x
  ret i64 0
}"""
)

NOTHING = ENTRY + " {\n ret i64 0\n}"


def doubled(*lengths):
    declared = [("float64", lengths)]
    return native(
        DOUBLED.replace("NDIM", str(len(lengths))), declared, [("fresh", "float64", len(lengths))]
    )


class Labelled(np.ndarray):
    """A subclass that adds nothing."""


def scalars_added(n_inputs, n_outputs):
    """Return a function of scalars whose output `j` is the sum of the inputs + `j`."""
    lines = [ENTRY + " {"]
    total = "0.0"
    for k in range(n_inputs):
        lines += [
            f"  %at{k} = getelementptr ptr, ptr %inputs, i64 {k}",
            f"  %data{k} = load ptr, ptr %at{k}",
            f"  %x{k} = load double, ptr %data{k}",
            f"  %sum{k} = fadd double {total}, %x{k}",
        ]
        total = f"%sum{k}"
    for j in range(n_outputs):
        lines += [
            f"  %out{j} = call ptr @allocate(ptr %context, i64 {j}, ptr null)",
            f"  %null{j} = icmp eq ptr %out{j}, null",
            f"  br i1 %null{j}, label %full, label %go{j}",
            f"go{j}:",
            f"  %y{j} = fadd double {total}, {float(j)}",
            f"  store double %y{j}, ptr %out{j}",
        ]
    lines += ["  ret i64 0", *(["full:", "  ret i64 -1"] if n_outputs else []), "}"]
    return native(
        "\n".join(lines),
        [("float64", ())] * n_inputs,
        [("fresh", "float64", 0)] * n_outputs,
    )
