"""Records of a report on machine code."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytensor_fuse._native.program.external.draws import SYMBOLS
from pytensor_fuse._reports.text import size

if TYPE_CHECKING:
    from collections.abc import Mapping


class NativeState(enum.Enum):
    """The state of a graph's compilation."""

    WHOLE = "machine code as a whole"
    PARTS = "its regions are machine code, and Numba compiles the rest"
    NO_RULE = "Numba compiles it: there are nodes that cannot be lowered"
    NUMBA = "Numba compiles it, although every node can be lowered: native was off, or failed"
    PYTHON = "its regions are machine code, and Python runs the rest"
    OTHER = "another linker compiled it: only functions of Numba mode become machine code"
    COULD = "not compiled; it would become machine code as a whole"
    COULD_NOT = "not compiled; there are nodes that cannot be lowered"


@dataclass(frozen=True)
class PythonRuns:
    """The number of runs in Python of a function that Numba has not compiled.

    Attributes
    ----------
    n_runs
        The number of runs so far.
    most_runs
        The number of runs before Numba compiles the function: they take as long as its compilation.
        None if it always runs in Python, because Numba would call the same Python code.
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
        The node's position in the order of execution and its op; or the variable.
    why
        The reason why it cannot be lowered.
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
        The number of loops around it.
    extent
        The trip count; None if it is known only at the call.
    lanes
        The number of elements per vector; 1 if the loop runs element by element.
    why_scalar
        The reason why the loop is not vectorized; None if it is.
    register_bits
        The width of the registers in which it computes, read from LLVM's assembly: 512, 256, 128,
        or 0 if each holds one element; None if it is unknown.
    n_operations
        The number of operations of each iteration, without those of inner loops.
    n_reductions
        The number of reductions, such as sums and products.
    reads, writes
        The names of the buffers that it accesses, without those of inner loops.
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
    """A call of a routine of BLAS or LAPACK, or of NumPy's C code that draws a random number.

    Attributes
    ----------
    depth
        The number of loops around it.
    name
        The routine's name in the program.
    function
        The external function, as SciPy or NumPy names it: ``"blas.dgemm"``, or
        ``"numpy.random_gamma"``.
    operands
        The names of the buffers that it is called on, with written ones first; for a draw, the
        generator.
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
        The dtype of its elements.
    shape
        Its lengths; None for one that is known only at the call.
    n_bytes
        Its size; None if unknown.
    offset
        The offset of a temporary buffer in the scratch memory of a call; None if unknown. Buffers
        with disjoint live ranges may share memory.
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
        Its loops, each before its inner loops.
    calls
        Its calls of routines of BLAS and LAPACK, in the order of the program.
    buffers
        Its arrays.
    scratch_bytes
        The scratch memory of a call, as far as its size is known before the call.
    has_late_sizes
        Whether further scratch memory is needed, of a size that depends on the arguments.
    seconds
        The duration of each step of the compilation, by name: ``lower`` from the graph to loops,
        ``passes`` over these, ``emit`` their LLVM text, ``code`` from that to machine code. Steps
        that have not been done are absent.
    origin
        The origin of the machine code: ``"compiled"``, ``"memory"`` or ``"disk"``; None if there is
        none.
    native_math
        The origin of mathematical functions, as for `enable`: ``"vector"`` or ``"libm"``.
    text
        The loops as text.
    llvm
        The LLVM text.
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
        return asdict(self)
