"""The records that a report on machine code holds."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytensor_fuse._native.program.external.draws import SYMBOLS
from pytensor_fuse._reports.text import size

if TYPE_CHECKING:
    from collections.abc import Mapping


class NativeState(enum.Enum):
    """What became of a graph."""

    WHOLE = "machine code as a whole"
    PARTS = "its regions are machine code, Numba has the rest"
    NO_RULE = "Numba compiles it: there are nodes that cannot be lowered"
    NUMBA = "Numba compiles it, although every node can be lowered: native was off, or failed"
    PYTHON = "its regions are machine code, Python has the rest"
    OTHER = "another linker compiled it: only those of Numba mode become machine code"
    COULD = "not compiled; it would become machine code as a whole"
    COULD_NOT = "not compiled; there are nodes that cannot be lowered"


@dataclass(frozen=True)
class PythonRuns:
    """How often a function has run in Python that Numba has not compiled.

    Attributes
    ----------
    n_runs
        How often it has.
    most_runs
        How often it does before Numba compiles it: as often as takes as long as compiling does.
        None if it always does, for Numba would have Python run the same.
    """

    n_runs: int
    most_runs: int | None

    def __str__(self) -> str:
        if self.most_runs is None:
            return "Python calls SciPy's optimizers, as it would with Numba"
        return (
            f"it is known to run seldom: {self.n_runs:,} of {self.most_runs:,} runs in Python, "
            "which take less than Numba takes to compile"
        )


@dataclass(frozen=True)
class NotNative:
    """A node, an input or an output that keeps a graph from being machine code as a whole.

    Attributes
    ----------
    name
        Its place in the order in which the graph runs, and its op; or the variable.
    why
        Why it cannot be lowered, in words.
    """

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


@dataclass(frozen=True)
class NativeLoop:
    """A loop of machine code.

    Attributes
    ----------
    depth
        How many loops it is in.
    extent
        How often it runs; None if that is known only when the function is called.
    lanes
        How many elements it takes at once, in vectors; 1 if it runs element by element.
    why_scalar
        What keeps it from vectors; None if nothing does.
    register_bits
        How wide the registers are that it computes in, read from LLVM's assembly: 512, 256, 128,
        or 0 if there is one element in each; None if that is not known.
    n_operations
        How many operations each iteration has, without those of loops inside.
    n_reductions
        How many sums, products and the like it makes.
    reads, writes
        The names of the buffers that it accesses, without those of loops inside.
    """

    depth: int
    extent: int | None
    lanes: int
    why_scalar: str | None
    register_bits: int | None
    n_operations: int
    n_reductions: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    def __str__(self) -> str:
        extent = "?" if self.extent is None else f"{self.extent:,}"
        how = "element by element" if self.lanes == 1 else f"vectors of {self.lanes}"
        if self.lanes > 1 and self.register_bits is not None:
            how += f", {self.register_bits} bits" if self.register_bits else ", none in LLVM's code"
        text = f"{'  ' * self.depth}for {extent:<9} {how:<23} {self.n_operations:>4} operations"
        text += f", {len(self.reads)} read, {len(self.writes)} written"
        if self.n_reductions:
            text += f", {self.n_reductions} reduced"
        return text if self.why_scalar is None else f"{text}: {self.why_scalar}"


@dataclass(frozen=True)
class NativeCall:
    """A call of a routine of BLAS or LAPACK, or of a function of NumPy that draws a random number.

    Attributes
    ----------
    depth
        How many loops it is in.
    name
        The routine's name in the program.
    function
        The function that it is, as SciPy or NumPy calls it: ``"blas.dgemm"``, or
        ``"numpy.random_gamma"``.
    operands
        The names of the buffers that it is called on, those that it writes first; the generator
        that it draws from.
    """

    depth: int
    name: str
    function: str
    operands: tuple[str, ...]

    @property
    def is_draw(self) -> bool:
        """Whether it draws a random number."""
        return self.function.startswith(SYMBOLS)

    def __str__(self) -> str:
        times = ", in a loop" if self.depth else ""
        if self.is_draw:
            return f"draws {self.name} from {self.operands[0]} ({self.function}{times})"
        return f"calls {self.name} on {', '.join(self.operands)} ({self.function}{times})"


@dataclass(frozen=True)
class NativeBuffer:
    """An array of machine code.

    Attributes
    ----------
    name
        Its number in the program, and its variable's name, if that has one.
    kind
        ``"input"``, ``"constant"``, ``"output"`` or ``"temporary"``.
    dtype
        That of its elements.
    shape
        Its lengths; None for one that is known only when the function is called.
    n_bytes
        Its size, if that is known.
    offset
        Where in the scratch memory of a call a temporary one lies, if that is known: those that
        are not in use together may lie in one place.
    """

    name: str
    kind: str
    dtype: str
    shape: tuple[int | None, ...]
    n_bytes: int | None
    offset: int | None

    def __str__(self) -> str:
        lengths = ", ".join("?" if length is None else str(length) for length in self.shape)
        place = "" if self.offset is None else f", at {self.offset}"
        return f"{self.name}: {self.kind} {self.dtype}[{lengths}], {size(self.n_bytes)}{place}"


@dataclass(frozen=True)
class NativeRegion:
    """One function of machine code: a graph, or a part of one.

    Attributes
    ----------
    nodes
        The names of its nodes.
    loops
        Its loops, each before those inside of it.
    calls
        Its calls of routines of BLAS and LAPACK, in the order of the program.
    buffers
        Its arrays.
    scratch_bytes
        The temporary memory of a call, as far as its size is known now.
    has_late_sizes
        Whether more is needed, as much as the arguments of a call say.
    seconds
        How long each step of compiling took, by its name: ``lower`` from the graph to loops,
        ``passes`` over these, ``emit`` their text for LLVM, ``code`` from that to machine code.
        Steps that have not been done are not there.
    origin
        Where the machine code came from: ``"compiled"``, ``"memory"`` or ``"disk"``; None where
        there is none.
    native_math
        Where mathematical functions come from, as `enable` takes it: ``"vector"`` or ``"libm"``.
    text
        The loops as text.
    llvm
        What LLVM is given.
    """

    nodes: tuple[str, ...]
    loops: tuple[NativeLoop, ...]
    calls: tuple[NativeCall, ...]
    buffers: tuple[NativeBuffer, ...]
    scratch_bytes: int
    has_late_sizes: bool
    seconds: Mapping[str, float]
    origin: str | None
    native_math: str
    text: str
    llvm: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold.

        Returns
        -------
        dict
            An entry for each attribute.
        """
        found = asdict(self)
        return {**found, "seconds": dict(self.seconds)}
