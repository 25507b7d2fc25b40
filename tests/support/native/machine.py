"""Loop programs as machine code, called through ctypes with guarded memory.

Each array lies at the end of a page before an inaccessible one, or at the beginning of a page after
an inaccessible one, so an access out of bounds ends the process; pytest-xdist then names the test.
In the deep profile, each call runs in a forked process, so that Hypothesis can shrink the program
that crashes.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import pickle
import signal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pytensor_fuse._native.emission.machine import Machine
from pytensor_fuse._native.emission.module import Module, emit_module
from pytensor_fuse._native.emission.packing import NOT_PACKED, Packing, packed_constants
from pytensor_fuse._native.passes.placement import Placement, place_temporaries
from pytensor_fuse._native.passes.rewrite import rewritten
from pytensor_fuse._native.program.arithmetic import NUMPY_DTYPES
from pytensor_fuse._native.program.failures import raised_by
from pytensor_fuse._native.runtime.externals import address_of
from pytensor_fuse._native.runtime.llvm import Code, object_code
from support.effort import IS_DEEP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.program.model import Program

MACHINES = {
    "512": Machine(512, has_masks=True, has_fma=True),
    "256": Machine(256, has_masks=True, has_fma=True),
    "128": Machine(128, has_masks=False, has_fma=False),
    "scalar": Machine(64, has_masks=False, has_fma=False),
}

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_NO_ACCESS = 0
_ANY_ACCESS = mmap.PROT_READ | mmap.PROT_WRITE
_PAGE = mmap.PAGESIZE

_ALLOCATE = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)
)
_SCRATCH = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


class _Context(ctypes.Structure):
    _fields_ = [
        ("allocate", _ALLOCATE),
        ("scratch", _SCRATCH),
        ("details", ctypes.c_int64 * 8),
    ]


class Compiled(NamedTuple):
    """A program as machine code."""

    program: Program
    placement: Placement
    module: Module
    code: Code
    forbidden: tuple[tuple[int, int], ...] = ()
    packing: Packing = NOT_PACKED


def compiled(
    program: Program,
    machine: Machine,
    *,
    uses_library: bool = False,
    place: Callable[[Program], Placement] = place_temporaries,
    packs: bool = False,
) -> Compiled:
    """Compile a program, which is not changed.

    Parameters
    ----------
    program, machine, uses_library
        As for `emit_module`.
    place
        Places the temporary buffers.
    packs
        Whether constants are packed, where possible; `call` then requires the output of `laid_out`.
    """
    program = rewritten(program)
    placement = place(program)
    packing = packed_constants(program, machine) if packs else NOT_PACKED
    module = emit_module(program, placement, machine, uses_library=uses_library, packing=packing)
    externals = [(symbol, address_of(symbol)) for symbol in module.externals]
    code = Code(object_code(module.text), externals)
    return Compiled(program, placement, module, code, packing=packing)


class Memory:
    """Memory whose pieces have inaccessible neighbors.

    Parameters
    ----------
    at_end
        Whether pieces are followed by inaccessible memory; otherwise they follow it.
    """

    def __init__(self, *, at_end: bool) -> None:
        self._at_end = at_end
        self._pieces: list[tuple[int, int]] = []

    def close(self) -> None:
        """Free the pieces."""
        for start, n_bytes in self._pieces:
            _LIBC.munmap(start, n_bytes)
        self._pieces.clear()

    def piece(self, n_bytes: int, alignment: int = 1) -> int:
        """Return the address of a new piece; a piece of no bytes is inaccessible."""
        pages = -(-n_bytes // _PAGE)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        start = _LIBC.mmap(None, (pages + 2) * _PAGE, _NO_ACCESS, flags, -1, 0)
        self._pieces.append((start, (pages + 2) * _PAGE))
        first = start + _PAGE
        if pages:
            assert not _LIBC.mprotect(first, pages * _PAGE, _ANY_ACCESS)
            ctypes.memset(first, 0xFF, pages * _PAGE)
        if not self._at_end:
            return first
        return (first + pages * _PAGE - n_bytes) // alignment * alignment

    def array(self, shape: tuple[int, ...], dtype: Any) -> tuple[np.ndarray, int]:
        """Return a new array, and its address."""
        dtype = np.dtype(dtype)
        n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        address = self.piece(n_bytes)
        if not n_bytes:
            return np.zeros(shape, dtype), address
        raw = (ctypes.c_char * n_bytes).from_address(address)
        return np.frombuffer(raw, dtype).reshape(shape), address

    def copied(self, array: np.ndarray) -> tuple[np.ndarray, int]:
        """Return a copy of an array, and its address."""
        new, address = self.array(array.shape, array.dtype)
        new[...] = array
        return new, address


def call(
    function: Compiled,
    inputs: Sequence[np.ndarray],
    constants: Sequence[np.ndarray] = (),
    *,
    at_end: bool = True,
) -> list[np.ndarray]:
    """Call machine code in this process.

    Parameters
    ----------
    function
        The code.
    inputs
        The arrays; those that the program writes are overwritten.
    constants
        The arrays of constants.
    at_end
        As for `Memory`.

    Returns
    -------
    list of np.ndarray
        The outputs.

    Raises
    ------
    BaseException
        The exception of a failed check.
    """
    memory = Memory(at_end=at_end)
    try:
        return _called(function, inputs, constants, memory)
    finally:
        memory.close()


def _called(
    function: Compiled,
    inputs: Sequence[np.ndarray],
    constants: Sequence[np.ndarray],
    memory: Memory,
) -> list[np.ndarray]:
    program = function.program
    given = [memory.copied(array) for array in inputs]
    fixed = [memory.copied(array) for array in constants]
    made: dict[int, np.ndarray] = {}
    n_scratch = itertools.count()
    dtypes = {
        about.position: (about.dtype, len(about.lengths))
        for about in program.buffers
        if about.kind == "output"
    }

    @_ALLOCATE
    def allocate(context: int, output: int, dims: Any) -> int:
        dtype, ndim = dtypes[output]
        assert output not in made, "an output is allocated twice"
        made[output], address = memory.array(
            tuple(dims[axis] for axis in range(ndim)), NUMPY_DTYPES[dtype]
        )
        return address

    @_SCRATCH
    def scratch(context: int, n_bytes: int) -> int:
        assert next(n_scratch) == 0, "the scratch memory is asked for twice"
        arena = memory.piece(n_bytes, 64)
        for start, end in function.forbidden:
            assert arena % _PAGE == 0
            assert not _LIBC.mprotect(arena + start, end - start, _NO_ACCESS)
        return arena

    dims = [length for array in inputs for length in array.shape]
    context = _Context(allocate, scratch)
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4)(function.code.address)
    code = entry(
        (ctypes.c_void_p * (len(given) or 1))(*[address for _, address in given]),
        (ctypes.c_int64 * (len(dims) or 1))(*dims),
        (ctypes.c_void_p * (len(fixed) or 1))(*[address for _, address in fixed]),
        ctypes.byref(context),
    )
    if code > 0:
        raise raised_by(program.failures[code - 1], list(context.details))
    assert code == 0, "there is no memory"
    for (array, _), before in zip(fixed, constants, strict=True):
        assert array.tobytes() == before.tobytes(), "a constant is overwritten"
    for (array, _), original in zip(given, inputs, strict=True):
        original[...] = array
    outputs: list[np.ndarray] = []
    for kind, number in program.results:
        if kind == "buffer":
            outputs.append(made[program.buffers[number].position].copy())
        else:
            outputs.append(inputs[number] if kind == "input" else outputs[number])
    return outputs


def in_child(function: Callable[[], Any]) -> Any:
    """Return a function's result in a forked process, or raise its exception."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            # Reports of expected crashes are useless.
            for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
                signal.signal(number, signal.SIG_DFL)
            try:
                answer = True, function()
            except Exception as error:
                answer = False, error
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(answer, pipe)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        raise AssertionError(f"the machine code ends in {name}")
    is_answer, answer = pickle.loads(data)
    if is_answer:
        return answer
    raise answer


def run_code(
    function: Compiled,
    inputs: Sequence[np.ndarray],
    constants: Sequence[np.ndarray] = (),
    *,
    at_end: bool = True,
) -> list[np.ndarray]:
    """Call machine code, in the deep profile in a forked process; otherwise as `call`."""
    if not IS_DEEP:
        return call(function, inputs, constants, at_end=at_end)

    def called() -> tuple[list[np.ndarray], list[np.ndarray]]:
        own = [array.copy() for array in inputs]
        return call(function, own, constants, at_end=at_end), own

    outputs, written = in_child(called)
    for array, after in zip(inputs, written, strict=True):
        array[...] = after
    return outputs


def with_known_lengths(program: Program, inputs: Sequence[np.ndarray]) -> Program:
    """Return a program for inputs of exactly these lengths."""
    known = rewritten(program)
    for value, (buffer, axis) in known.lengths.items():
        known.constants[value] = inputs[known.buffers[buffer].position].shape[axis]
    known.lengths = {}
    return known


def apart(program: Program, *, at_end: bool) -> tuple[Placement, list[tuple[int, int]]]:
    """Place each temporary buffer of a program of known lengths on pages of its own.

    Returns
    -------
    Placement
        The placement.
    list of (int, int)
        The ranges of the inaccessible pages in the arena.
    """
    own = place_temporaries(program)
    offsets: dict[int, Any] = {}
    forbidden = []
    end = 0
    for buffer in own.offsets:
        about = program.buffers[buffer]
        size = np.dtype(NUMPY_DTYPES[about.dtype]).itemsize
        for length in about.lengths:
            size *= int(program.constants[length])
        pages = -(-size // _PAGE) * _PAGE
        forbidden.append((end, end + _PAGE))
        end += _PAGE
        offsets[buffer] = end + pages - size if at_end else end
        end += pages
    forbidden.append((end, end + _PAGE))
    total = end + _PAGE if offsets else None
    return own._replace(offsets=offsets, total=total, n_bytes=end + _PAGE), forbidden
