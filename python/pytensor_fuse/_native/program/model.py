"""The loop program: an intermediate representation of loops over buffers, below the graph.

A program is a tree of blocks. A statement computes a value from values, reads or writes one element
of a buffer, calls a routine of BLAS or LAPACK on whole buffers, draws a random number, checks a
condition, allocates a buffer, or is a loop or a branch with blocks of its own. Values are scalars
in registers, named by dense ids and assigned once (SSA); buffers are C-contiguous arrays, named by
dense ids, whose lengths are values. A 0-d array is a buffer without lengths.

The dtypes are ``f64 f32 i64 i32 i16 i8 u64 u32 u16 u8 bool``. Indices and lengths are ``i64``.

`pytensor_fuse._native.program.operations` lists the operations and `external.routines` the
routines; `text` prints programs and `parse` reads them, `verify` checks them, and `interpret` runs
them, slowly, as the oracle of every later stage.
"""

from __future__ import annotations

from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, Literal, NamedTuple

Value = int
BufferId = int
BufferKind = Literal["input", "constant", "temporary", "output"]

DTYPES: Final = ("f64", "f32", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "bool")
ITEM_SIZES: Final = {name: 1 if name == "bool" else int(name[1:]) // 8 for name in DTYPES}
_KINDS: Final = {"f": "float", "i": "int", "u": "uint"}
# The names of the dtypes in NumPy.
NAMES: Final = {name: name if name == "bool" else _KINDS[name[0]] + name[1:] for name in DTYPES}

# How a reduction or an accumulation combines two values. Maximum and minimum propagate NaN.
COMBINERS: Final = ("add", "mul", "maximum", "minimum", "and", "or", "xor")


@dataclass(slots=True, eq=False)
class Buffer:
    """An array in memory.

    Attributes
    ----------
    kind
        The caller passes ``input`` and ``constant`` buffers and allocates ``output`` buffers on
        request; ``temporary`` buffers lie in the scratch memory of a call.
    position
        The position among the inputs, constants or outputs; 0 for temporaries.
    dtype
        The dtype of its elements.
    lengths
        A value for each axis.
    is_once
        Whether each element is written at most once, and never read before that. A buffer that the
        caller passes is once if the program never writes it.
    """

    kind: BufferKind
    position: int
    dtype: str
    lengths: tuple[Value, ...]
    _: KW_ONLY
    is_once: bool = True


@dataclass(slots=True, eq=False)
class Op:
    """``out = name(*args)``: a pure operation on values."""

    out: Value
    name: str
    args: tuple[Value, ...]


@dataclass(slots=True, eq=False)
class Load:
    """``out = buffer[index]``.

    A guarded load is in bounds only because a check before it has passed.
    """

    out: Value
    buffer: BufferId
    index: tuple[Value, ...]
    _: KW_ONLY
    is_guarded: bool = False


@dataclass(slots=True, eq=False)
class Store:
    """``buffer[index] = value``, or ``buffer[index] = combiner(buffer[index], value)``.

    Attributes
    ----------
    combiner
        One of `COMBINERS`; empty for a plain store.
    is_guarded
        Whether the index is in bounds only because a check before it has passed.
    """

    buffer: BufferId
    index: tuple[Value, ...]
    value: Value
    combiner: str = ""
    _: KW_ONLY
    is_guarded: bool = False


class Reduction(NamedTuple):
    """``out = initial (+) term of iteration 0 (+) term of iteration 1 ...``.

    Attributes
    ----------
    out
        Defined after the loop.
    combiner
        One of `COMBINERS`.
    initial
        Defined outside of the loop.
    term
        Defined inside of the loop.
    """

    out: Value
    combiner: str
    initial: Value
    term: Value


class Carry(NamedTuple):
    """A value that each iteration hands to the next.

    Attributes
    ----------
    out
        Defined after the loop: the ``following`` value of the last iteration, or ``initial``.
    inner
        Defined inside of the loop: ``initial`` in the first iteration.
    initial
        Defined outside of the loop.
    following
        The value of ``inner`` in the next iteration.
    """

    out: Value
    inner: Value
    initial: Value
    following: Value


@dataclass(slots=True, eq=False)
class For:
    """A loop in which ``index`` counts from 0 to ``extent`` - 1.

    The first iteration in which ``until``, a ``bool`` value of the body, is true is the last one. A
    loop without ``until`` and without carries may run its iterations in any order if their accesses
    allow it, which the passes determine.
    """

    index: Value
    extent: Value
    body: list[Statement]
    reductions: list[Reduction]
    carries: list[Carry]
    until: Value | None = None


class Choice(NamedTuple):
    """A value that a branch defines: ``then`` or ``otherwise``, depending on the side that ran."""

    out: Value
    then: Value
    otherwise: Value


@dataclass(slots=True, eq=False)
class If:
    """A branch: runs one of two blocks, depending on ``condition``, a ``bool`` value."""

    condition: Value
    then: list[Statement]
    otherwise: list[Statement]
    choices: list[Choice]


@dataclass(slots=True, eq=False)
class Check:
    """A check: the call fails with one of the program's failures unless ``condition`` holds.

    Attributes
    ----------
    failure
        A position in `Program.failures`.
    details
        Up to 8 ``i64`` values for the message.
    """

    condition: Value
    failure: int
    details: tuple[Value, ...]


@dataclass(slots=True, eq=False)
class Allocate:
    """The allocation of an output or temporary buffer, whose lengths are known here."""

    buffer: BufferId


class Operand(NamedTuple):
    """An array that a routine is called with: a buffer, or a subarray of its trailing axes.

    Attributes
    ----------
    buffer
        The buffer.
    prefix
        An index of the leading axes; the operand is the subarray of the other axes at that index.
    """

    buffer: BufferId
    prefix: tuple[Value, ...] = ()


@dataclass(slots=True, eq=False)
class Call:
    """``out = name(sizes)(operands)``: a routine of BLAS or LAPACK.

    It is guarded: in bounds only because the checks before it have passed.

    Attributes
    ----------
    name
        One of `pytensor_fuse._native.program.external.routines.ROUTINES`, which lists the operands
        that it reads and writes.
    sizes
        An ``i64`` value for each size of the routine.
    operands
        The arrays. Apart from axes of length 1, their shapes are those that the routine declares.
    out
        The ``i64`` value of LAPACK's ``info``; None for routines of BLAS.
    """

    name: str
    sizes: tuple[Value, ...]
    operands: tuple[Operand, ...]
    out: Value | None


@dataclass(slots=True, eq=False)
class Draw:
    """``out = name(*args)``: a draw from a random generator, which changes its state.

    Attributes
    ----------
    name
        One of `pytensor_fuse._native.program.external.draws.DRAWS`.
    generator
        An input of one ``u64`` element, the address of a ``bitgen_t`` of NumPy's. It stands for the
        state of the generator, which a draw reads and writes, so its `is_once` is False.
    args
        The parameters of the distribution.
    """

    out: Value
    name: str
    generator: BufferId
    args: tuple[Value, ...]


Statement = Op | Load | Store | For | If | Check | Allocate | Call | Draw


class Failure(NamedTuple):
    """The exception of a failed check.

    Attributes
    ----------
    exception
        The exception class.
    message
        The text; ``{0}``, ``{1}`` ... stand for the details of the check, and ``{{0}}`` for
        ``{0}`` itself.
    """

    exception: type[BaseException]
    message: str


class Result(NamedTuple):
    """One output of the function.

    Attributes
    ----------
    kind
        ``buffer``: the output buffer of this number; ``input``: the array passed as that input,
        which has been overwritten in place; ``output``: the same array as an earlier output.
    number
        The number of the buffer, input or output.
    """

    kind: Literal["buffer", "input", "output"]
    number: int


@dataclass(slots=True, eq=False)
class Program:
    """A function over arrays.

    Attributes
    ----------
    dtypes
        The dtype of each value.
    constants
        The values that are literals: Python bools, ints and floats.
    lengths
        The values that are lengths of buffers that the caller passes, as (buffer, axis).
    buffers
        All buffers.
    body
        The outermost block.
    failures
        The exceptions of checks.
    results
        The outputs.
    reassociates
        Whether sums and products of floats may be taken in any order.
    calls_libm
        Whether mathematical functions are those that Numba's back end calls, to the last bit.
    """

    _: KW_ONLY
    reassociates: bool = False
    calls_libm: bool = False
    dtypes: list[str] = field(default_factory=list)
    constants: dict[Value, bool | int | float] = field(default_factory=dict)
    lengths: dict[Value, tuple[BufferId, int]] = field(default_factory=dict)
    buffers: list[Buffer] = field(default_factory=list)
    body: list[Statement] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)

    def with_body(self, body: list[Statement]) -> Program:
        """Return a program with the same values and buffers and another outermost block."""
        other = copy(self)
        other.body = body
        return other

    def extended(self) -> Program:
        """Return a copy to which values, literals and buffers may be added."""
        other = self.with_body(self.body)
        other.dtypes = list(self.dtypes)
        other.constants = dict(self.constants)
        other.buffers = list(self.buffers)
        return other
