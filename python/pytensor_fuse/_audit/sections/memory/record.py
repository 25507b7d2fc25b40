"""What an audit finds about memory: results, copies and the peak."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import Any

from pytensor_fuse._reports.text import count, place, size


class Use(enum.Enum):
    """Where the memory of a result comes from."""

    IN_PLACE = "in place"
    VIEW = "view"
    ALLOCATED = "allocated"


class NotInPlace(enum.Enum):
    """Why a node does not write its result over an input of the same size."""

    NO_FORM = "the op has no form that overwrites this input"
    CONSTANT = "a constant, or a view of one"
    INPUT = "an input that the caller keeps"
    SHARED = "a shared variable that the function does not update"
    VIEW_OF_INPUT = "a view of an input that must stay as it is"
    OUTPUT = "returned by the function, or in the memory of what is returned"
    READ_TWICE = "the node reads the same memory through another input"
    TAKEN = "overwritten by another node, or for another output"
    SEVERAL_CLIENTS = "nodes that need this result still read it"
    OTHER_TYPE = "of another static shape than the result, which PyTensor does not try"
    POSSIBLE = "nothing forbids it; no rewrite did it"


@dataclass(frozen=True)
class Missed:
    """An input of the dtype and shape of a result, which is not overwritten by it.

    Attributes
    ----------
    position
        Which input of the node it is.
    variable
        Its name, or that of the node that computes it.
    reason
        Why not.
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
        The name of the node, those of the nodes that it is inside of, and which output it is.
    use
        Where its memory comes from, as the op declares it.
    source
        The input that it overwrites or is a view of.
    may_copy
        Whether a result that is declared a view or in place may have memory of its own all the
        same: a reshaped array whose elements do not lie one after another cannot be a view, a
        number that is picked need not be, what a scan has computed is none, and LAPACK works on
        copies of what is not in its order.
    nbytes
        Its size, if it is known.
    missed
        The inputs that an allocated result could have gone into by their dtype and shape.
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
    """What copies."""

    JOIN = "join"
    ASSIGNMENT = "assignment that copies the whole array first"
    FILL = "fill"
    BOUNDARY = "copy of a result at the boundary of the function"


@dataclass(frozen=True)
class Copy:
    """A node whose work is to copy.

    Attributes
    ----------
    node, path
        Its name, and those of the nodes that it is inside of.
    kind
        What it is.
    nbytes
        The size of its result, if it is known.
    why
        What is known of the reason.
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
    """The most memory that the results of a call have together.

    What counts are the arrays of more than one element that nodes allocate, from when the node runs
    until nothing holds them: PyTensor's linkers let go of a variable when the last node that reads
    it has run, and of what is returned, or read by nothing, at the end; without ``allow_gc`` all
    stay. Other compilers, such as Numba, may let go of it later. Memory lives as long as a view of
    it is held. Inputs, constants, what nodes use while they run, and what their inner graphs hold,
    are not part of it.

    Attributes
    ----------
    nbytes
        The sum of the sizes that are known.
    node
        The node that runs then.
    holders
        The largest of what is live then: names and sizes.
    n_unknown
        How many allocated results of unknown size are left out.
    n_stored
        How many of these are of a size that does not follow from shapes: that of a sparse matrix
        depends on how many elements it stores, that of a list on what is in it.
    n_may_copy
        How many results that are views, other than of a number, or in place may be copies, which
        are not counted.
    n_inner_graphs
        How many inner graphs run node by node, whose own results are not counted.
    order_is_exact
        Whether the nodes surely run in the order that was followed.
    release_is_sure
        Whether variables are surely let go of when it is assumed: by PyTensor's own linkers.
    allow_gc
        Whether variables are let go of.
    live
        What is live while each node runs, in the order of the run.
    inputs, constants
        The known sizes of the inputs, and of the constants, together.
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
        """Whether nothing is left out, and the order is sure."""
        left_out = self.n_unknown or self.n_may_copy or self.n_inner_graphs
        return self.order_is_exact and self.release_is_sure and not left_out

    @property
    def _is_unknown(self) -> bool:
        """Whether there are results, and no size of any is known."""
        return self.n_unknown > 0 and not self.nbytes

    @property
    def figure(self) -> str:
        """The sum in words, and how sure it is."""
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


@dataclass(frozen=True)
class MemoryRecord:
    """What the audit found about memory.

    Attributes
    ----------
    results
        The tensors that nodes compute, in the order of the run, then those of inner graphs.
        Missed chances to work in place are looked for in the graph itself only.
    copies
        The nodes whose work is to copy, largest first.
    joins_eliminated
        Joins that `join_buffer_elimination` let kernels write into.
    peak
        The most memory at once.
    """

    results: tuple[Result, ...]
    copies: tuple[Copy, ...]
    joins_eliminated: int
    peak: Peak

    @property
    def missed(self) -> tuple[tuple[Result, Missed], ...]:
        """Results that could have gone into an input which nothing reads later, largest first."""
        pairs = [(r, m) for r in self.results for m in r.missed if m.dies]
        return tuple(sorted(pairs, key=lambda pair: -(pair[0].nbytes or 0)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        return {
            "results": [
                {
                    "node": r.node,
                    "path": list(r.path),
                    "output": r.output,
                    "use": r.use.value,
                    "source": r.source,
                    "may_copy": r.may_copy,
                    "nbytes": r.nbytes,
                    "missed": [{**asdict(m), "reason": m.reason.name} for m in r.missed],
                }
                for r in self.results
            ],
            "copies": [
                {**asdict(c), "path": list(c.path), "kind": c.kind.name} for c in self.copies
            ],
            "joins_eliminated": self.joins_eliminated,
            "peak": {
                **asdict(self.peak),
                "holders": [list(holder) for holder in self.peak.holders],
                "live": list(self.peak.live),
                "is_exact": self.peak.is_exact,
            },
        }
