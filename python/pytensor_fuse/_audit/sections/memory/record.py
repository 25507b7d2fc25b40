"""Records of memory: results, copies and the peak."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from pytensor_fuse._reports.text import count, place, size


class Use(enum.Enum):
    """The source of a result's memory."""

    IN_PLACE = "in place"
    VIEW = "view"
    ALLOCATED = "allocated"


class NotInPlace(enum.Enum):
    """The reason why a node does not write its result over an input of the same size."""

    NO_FORM = "the op has no form that overwrites this input"
    CONSTANT = "a constant, or a view of one"
    INPUT = "an input that the caller keeps"
    SHARED = "a shared variable that the function does not update"
    VIEW_OF_INPUT = "a view of an input that must stay as it is"
    OUTPUT = "returned by the function, or in the memory of what is returned"
    READ_TWICE = "the node reads the same memory through another input"
    TAKEN = "overwritten by another node, or for another output"
    SEVERAL_CLIENTS = "nodes that need this result still read it"
    OTHER_TYPE = "its static shape differs from the result's; PyTensor only tries equal ones"
    POSSIBLE = "nothing forbids it; no rewrite did it"


@dataclass(frozen=True)
class Missed:
    """An input of the dtype and shape of a result, which does not overwrite it.

    Attributes
    ----------
    position
        The index of the input.
    variable
        Its name, or that of the node that computes it.
    reason
        Why it is not overwritten.
    dies
        Whether nothing reads its memory later.
    """

    position: int
    variable: str
    reason: NotInPlace
    dies: bool


@dataclass(frozen=True)
class Result:
    """A tensor that a node computes.

    Attributes
    ----------
    node, path, output
        The name of the node, the names of the enclosing nodes, and the index of the output.
    use
        The source of its memory, as declared by the op.
    source
        The index of the input that it overwrites or is a view of.
    may_copy
        Whether a result that is declared a view or in place may still have memory of its own: a
        reshaped array that is not contiguous cannot be a view, an indexed scalar need not be, the
        result of a scan is none, and LAPACK copies arrays that are not in its order.
    nbytes
        Its size, if known.
    missed
        The inputs whose memory fits an allocated result by dtype and shape.
    """

    node: str
    path: tuple[str, ...]
    output: int
    use: Use
    source: int | None
    may_copy: bool
    nbytes: int | None
    missed: tuple[Missed, ...]

    def __str__(self) -> str:
        return place(self.path, self.node) + (f".{self.output}" if self.output else "")


class CopyKind(enum.Enum):
    """The kind of a copy."""

    JOIN = "join"
    ASSIGNMENT = "assignment that copies the whole array first"
    FILL = "fill"
    BOUNDARY = "copy of a result at the boundary of the function"


@dataclass(frozen=True)
class Copy:
    """A node whose purpose is to copy.

    Attributes
    ----------
    node, path
        Its name, and the names of the enclosing nodes.
    kind
        The kind of the copy.
    nbytes
        The size of its result, if known.
    why
        The reason, if known.
    """

    node: str
    path: tuple[str, ...]
    kind: CopyKind
    nbytes: int | None
    why: str

    def __str__(self) -> str:
        text = f"{place(self.path, self.node)}: {self.kind.value}, {size(self.nbytes)}"
        return f"{text} ({self.why})" if self.why else text


@dataclass(frozen=True)
class Peak:
    """The peak of the total memory of a call's results.

    Arrays of more than one element that nodes allocate are counted, from the run of the node until
    nothing holds them. PyTensor's linkers release a variable after its last reader has run, and
    returned and unread results at the end; without ``allow_gc`` all stay. Other compilers, such as
    Numba, may release arrays later. Memory is live as long as a view of it is held. Inputs,
    constants, temporary memory within nodes, and results within their inner graphs are not counted.

    Attributes
    ----------
    nbytes
        The sum of the known sizes.
    node
        The node that runs at the peak.
    holders
        The names and sizes of the largest results that are live at the peak.
    n_unknown
        The number of omitted allocated results, whose size is unknown.
    n_stored
        How many of these have a size that does not follow from shapes: that of a sparse matrix
        depends on the number of stored elements, that of a list on its elements.
    n_may_copy
        The number of results in place, or views other than of a scalar, that may be copies, which
        are not counted.
    n_inner_graphs
        The number of inner graphs that run node by node, whose results are not counted.
    order_is_exact
        Whether the assumed order of the nodes is certain.
    release_is_sure
        Whether the assumed release of variables is certain, as with PyTensor's own linkers.
    allow_gc
        Whether variables are released before the end of the run.
    live
        The live bytes during each node, in the order of the run.
    inputs, constants
        The total known sizes of the inputs, and of the constants.
    """

    nbytes: int
    node: str | None
    holders: tuple[tuple[str, int], ...]
    n_unknown: int
    n_stored: int
    n_may_copy: int
    n_inner_graphs: int
    order_is_exact: bool
    release_is_sure: bool
    allow_gc: bool
    live: tuple[int, ...]
    inputs: int
    constants: int

    @property
    def is_exact(self) -> bool:
        """Whether nothing is left out, and the order is certain."""
        left_out = self.n_unknown or self.n_may_copy or self.n_inner_graphs
        return self.order_is_exact and self.release_is_sure and not left_out

    @property
    def _is_unknown(self) -> bool:
        """Whether there are results, but no known sizes."""
        return self.n_unknown > 0 and not self.nbytes

    @property
    def figure(self) -> str:
        """The sum in words, with its certainty."""
        if self.is_exact:
            return size(self.nbytes)
        if self._is_unknown:
            return "not known"
        return f"{'at least' if self.order_is_exact else 'about'} {size(self.nbytes)}"

    def __str__(self) -> str:
        text = f"live at the peak: {self.figure}"
        if self.node is not None and not self._is_unknown:
            text += f", while {self.node} runs"
        reasons = []
        if self.n_unknown > self.n_stored:
            n_shapes = self.n_unknown - self.n_stored
            reasons.append(f"{count(n_shapes, 'result')} of unknown size; give shapes= or --shape")
        if self.n_stored:
            stored = count(self.n_stored, "result")
            reasons.append(f"{stored} whose size depends on the elements that are stored")
        if self.n_may_copy:
            reasons.append(f"{count(self.n_may_copy, 'view')} or work in place that may copy")
        if self.n_inner_graphs:
            reasons.append(f"and what {count(self.n_inner_graphs, 'inner graph')} may hold")
        if not self.order_is_exact:
            reasons.append("what runs depends on values")
        if not self.release_is_sure:
            reasons.append("the compiler may let go of arrays later")
        if not self.allow_gc:
            reasons.append("allow_gc is off, so nothing is let go of")
        reasons.append("what nodes use while they run is left out")
        return f"{text} ({'; '.join(reasons)})"
