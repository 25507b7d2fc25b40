"""The part of an audit about memory: what is allocated, copied, and done in place."""

from __future__ import annotations

import enum
import math
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.compile.ops import DeepCopyOp
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.link.c.basic import CLinker
from pytensor.scalar.basic import ScalarType
from pytensor.scan.op import Scan
from pytensor.tensor.basic import Alloc
from pytensor.tensor.blas import Gemv
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import Subtensor
from pytensor.tensor.type import TensorType
from pytensor.tensor.type_other import NoneTypeT, SliceType

from pytensor_fuse._audit.aliases import Aliases, NotInPlace, fits
from pytensor_fuse._audit.shapes import is_sparse
from pytensor_fuse._joins.ops.join import WriteJoin
from pytensor_fuse._joins.ops.split import WriteSplit
from pytensor_fuse._joins.reports import explain_joins
from pytensor_fuse._pytensor.fused_elemwise import is_fused_elemwise
from pytensor_fuse._pytensor.ops import assigns, is_join, reshapes
from pytensor_fuse._pytensor.targets import Target
from pytensor_fuse._reports.page import escape
from pytensor_fuse._reports.tables import bounded, count, paragraphs, place, size, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._audit.graph import GraphContext

# How many of what is live at the peak are named.
_HOLDERS = 10

# Types of what is not counted.
_SMALL = (NoneTypeT, RandomType, ScalarType, SliceType)

# Points of the curve of live memory on a page.
_POINTS = 400


class Use(enum.Enum):
    """Where the memory of a result comes from."""

    IN_PLACE = "in place"
    VIEW = "view"
    ALLOCATED = "allocated"


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
        return f"{' > '.join((*self.path, self.node))}{f'.{self.output}' if self.output else ''}"


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
        text = f"{' > '.join((*self.path, self.node))}: {self.kind.value}, {size(self.nbytes)}"
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
    def figure(self) -> str:
        """The sum in words, and how sure it is."""
        if self.is_exact:
            return size(self.nbytes)
        return f"{'at least' if self.order_is_exact else 'about'} {size(self.nbytes)}"

    def __str__(self) -> str:
        text = f"live at the peak: {self.figure}"
        if self.node is not None:
            text += f", while {self.node} runs"
        reasons = []
        if self.n_unknown > self.n_stored:
            n_shapes = self.n_unknown - self.n_stored
            reasons.append(f"{count(n_shapes, 'result')} of unknown size; give shapes=")
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
class MemorySection:
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

    def lines(self) -> list[str]:
        """Return the lines of the text."""
        lines = [str(self.peak)]
        lines += bounded(
            self.peak.holders, lambda held: f"  {size(held[1])} of {held[0]}", "results", 4
        )
        lines += bounded(self.copies, str, "copies")
        if self.joins_eliminated:
            lines.append(
                f"{count(self.joins_eliminated, 'join')} eliminated: kernels write into it"
            )
        for reason, pairs in self._by_reason():
            known = [r.nbytes for r, _ in pairs if r.nbytes is not None]
            total = f" of {size(sum(known))}" if known else ""
            named = ", ".join(f"{r} over {m.variable}" for r, m in pairs[:2])
            more = f", ... and {len(pairs) - 2:,} more" if len(pairs) > 2 else ""
            lines.append(
                f"not in place, {count(len(pairs), 'result')}{total}: {reason.value} "
                f"({named}{more})"
            )
        lines.append(self._summary())
        return lines

    def html(self) -> str:
        """Return the body of the section."""
        peak = self.peak
        parts = [paragraphs([str(peak), self._summary()]), _curve(peak)]
        if peak.holders:
            most = peak.holders[0][1] or 1
            parts.append("<h3>Live at the peak</h3>")
            parts.append(
                table(
                    ("result of", "size"),
                    [(name, size(n)) for name, n in peak.holders],
                    numbers=(1,),
                    bars=[n / most for _, n in peak.holders],
                )
            )
        if self.copies:
            most = max((c.nbytes or 0 for c in self.copies), default=0) or 1
            parts.append("<h3>Copies</h3>")
            parts.append(
                table(
                    ("node", "what", "size", "why"),
                    [
                        (place(c.path, c.node), c.kind.value, size(c.nbytes), c.why)
                        for c in self.copies
                    ],
                    numbers=(2,),
                    bars=[(c.nbytes or 0) / most for c in self.copies],
                )
            )
        if self.missed:
            most = max((r.nbytes or 0 for r, _ in self.missed), default=0) or 1
            parts.append("<h3>Not in place, although nothing reads the input later</h3>")
            parts.append(
                table(
                    ("result", "size", "input", "why not"),
                    [(r, size(r.nbytes), m.variable, m.reason.value) for r, m in self.missed],
                    numbers=(1,),
                    bars=[(r.nbytes or 0) / most for r, _ in self.missed],
                )
            )
        return "".join(parts)

    def _by_reason(self) -> list[tuple[NotInPlace, list[tuple[Result, Missed]]]]:
        groups: defaultdict[NotInPlace, list[tuple[Result, Missed]]] = defaultdict(list)
        for result, missed in self.missed:
            groups[missed.reason].append((result, missed))
        return sorted(groups.items(), key=lambda group: -sum(r.nbytes or 0 for r, _ in group[1]))

    def _summary(self) -> str:
        uses = Counter(result.use for result in self.results)
        allocated = [r.nbytes for r in self.results if r.use is Use.ALLOCATED and not r.path]
        known = sum(n or 0 for n in allocated)
        return (
            f"{count(len(self.results), 'result')}: {uses[Use.IN_PLACE]:,} in place, "
            f"{uses[Use.VIEW]:,} views, {uses[Use.ALLOCATED]:,} allocated"
            + (f", {size(known)} in a call" if known else "")
        )


def audit_memory(context: GraphContext) -> MemorySection:
    """Audit the memory of a graph; O(nodes + edges), and O(nodes^2) bits for reachability."""
    aliases = Aliases(context)
    results = [r for graph in _graphs(context) for r in _results(graph, aliases)]
    reports = explain_joins(context.fgraph) if isinstance(context.fgraph, FunctionGraph) else ()
    whys: defaultdict[str, set[str]] = defaultdict(set)
    for report in reports:
        if not report.eliminated:
            whys[report.join].add(report.reason.value)
    # Reports name joins by what they print, which several may share.
    why_joins = {join: next(iter(found)) for join, found in whys.items() if len(found) == 1}
    copies = [c for graph in _graphs(context) for c in _copies(graph, why_joins)]
    return MemorySection(
        tuple(results),
        tuple(sorted(copies, key=lambda copy: -(copy.nbytes or 0))),
        sum(report.eliminated for report in reports),
        _peak(context),
    )


def _graphs(context: GraphContext) -> Iterator[GraphContext]:
    """Iterate over the graphs whose nodes run one by one: not over those that are one loop."""
    yield context
    for node, inner in context.inner:
        if not is_fused_elemwise(node.op):
            yield from _graphs(inner)


def _results(graph: GraphContext, aliases: Aliases) -> Iterator[Result]:
    for node in graph.order:
        for output, variable in enumerate(node.outputs):
            if not isinstance(variable.type, TensorType):
                continue
            use, source = _use(node, output)
            missed: tuple[Missed, ...] = ()
            # A copy is made to be one.
            copies = isinstance(node.op, DeepCopyOp)
            if use is Use.ALLOCATED and not graph.path and not copies:
                missed = tuple(_missed(graph, aliases, node, output))
            yield Result(
                node=graph.name(node),
                path=graph.path,
                output=output,
                use=use,
                source=source,
                may_copy=_may_copy(graph, node, use),
                nbytes=graph.nbytes(variable),
                missed=missed,
            )


def _use(node: Apply[Any], output: int) -> tuple[Use, int | None]:
    for use, of_op in ((Use.IN_PLACE, node.op.destroy_map), (Use.VIEW, node.op.view_map)):
        if output in of_op:
            return use, of_op[output][0]
    return Use.ALLOCATED, None


def _may_copy(graph: GraphContext, node: Apply[Any], use: Use) -> bool:
    """Whether a result that is declared a view or in place may have memory of its own."""
    if use is Use.ALLOCATED:
        return False
    if use is Use.IN_PLACE:
        if isinstance(node.op, Elemwise | Scan | WriteJoin) or assigns(node.op):
            return False
        if is_fused_elemwise(node.op):
            return False
        # What others declare is that they may write there: LAPACK needs an array in Fortran's
        # order, and what Python hands to BLAS is copied if that is not as it wants it.
        compiled = graph.target in (Target.C, Target.NUMBA)
        return not (compiled and isinstance(node.op, Gemv))
    if _is_picked(node):
        # NumPy gives a number, C code a view of it.
        return True
    if isinstance(node.op, Scan):
        # A scan of no steps hands on the state that it was given; Numba copies it always.
        return True
    # What is reshaped is copied where its elements are not in a row.
    if not (isinstance(node.op, Reshape) or reshapes(node.op)):
        return False
    made = node.inputs[0].owner
    # What is allocated with one dimension is in a row.
    return made is None or node.inputs[0].type.ndim != 1 or _use(made, 0)[0] is not Use.ALLOCATED


def _is_picked(node: Apply[Any]) -> bool:
    """Whether the result is one element of an array."""
    return isinstance(node.op, Subtensor) and node.outputs[0].type.ndim == 0


def _missed(
    graph: GraphContext, aliases: Aliases, node: Apply[Any], output: int
) -> Iterator[Missed]:
    first = {variable: i for i, variable in reversed(list(enumerate(node.inputs)))}
    for variable, position in sorted(first.items(), key=lambda item: item[1]):
        if fits(graph, node, output, position):
            yield Missed(
                position,
                graph.variable_name(variable),
                aliases.why_not(node, output, position),
                aliases.dies(variable, node),
            )


# Copies


def _copies(graph: GraphContext, why_joins: dict[str, str]) -> Iterator[Copy]:
    sharing = _sharing(graph)
    for node in graph.order:
        op = node.op
        why = ""
        if is_join(node):
            kind = CopyKind.JOIN
            why = why_joins.get(str(node), "")
        elif assigns(op) and not op.destroy_map:
            kind = CopyKind.ASSIGNMENT
        elif isinstance(op, Alloc):
            kind = CopyKind.FILL
        elif isinstance(op, DeepCopyOp):
            kind = CopyKind.BOUNDARY
            why = _why_copied(graph, node, sharing)
        else:
            continue
        yield Copy(graph.name(node), graph.path, kind, graph.nbytes(node.outputs[0]), why)


def _sharing(graph: GraphContext) -> dict[Variable[Any, Any], list[int]]:
    """Return which outputs have, or are copied from, the memory of each variable."""
    sharing: defaultdict[Variable[Any, Any], list[int]] = defaultdict(list)
    if any(isinstance(node.op, DeepCopyOp) for node in graph.order):
        for i, output in enumerate(graph.fgraph.outputs):
            sharing[_memory_of(_uncopied(output))].append(i)
    return sharing


def _why_copied(
    graph: GraphContext, node: Apply[Any], sharing: dict[Variable[Any, Any], list[int]]
) -> str:
    """Say what a result that is copied at the boundary shares memory with."""
    copied = node.inputs[0]
    root = _memory_of(copied)
    view = "" if root is copied else "declared a view of "
    if isinstance(root, Constant):
        return f"it is {view}a constant"
    if root.owner is None:
        return (
            f"it is {view}the input {graph.variable_name(root)}; "
            "In(..., borrow=True) and Out(..., borrow=True) leave that to you"
        )
    outputs = graph.fgraph.outputs
    other = next((i for i in sharing.get(root, ()) if outputs[i].owner is not node), None)
    return "" if other is None else f"it shares memory with output {other}"


def _uncopied(variable: Variable[Any, Any]) -> Variable[Any, Any]:
    if variable.owner is not None and isinstance(variable.owner.op, DeepCopyOp):
        copied: Variable[Any, Any] = variable.owner.inputs[0]
        return copied
    return variable


def _memory_of(variable: Variable[Any, Any]) -> Variable[Any, Any]:
    """Return the variable whose memory a variable has, seen through views and work in place."""
    while variable.owner is not None:
        _, source = _use(variable.owner, variable.owner.outputs.index(variable))
        if source is None:
            return variable
        variable = variable.owner.inputs[source]
    return variable


# Peak


def _peak(graph: GraphContext) -> Peak:
    allow_gc = _allows_gc(graph)
    last = len(graph.order) - 1
    returned = set(graph.fgraph.outputs)
    sizes: list[int] = []
    names: list[str] = []
    births: list[int] = []
    deaths: list[int] = []
    memory: dict[Variable[Any, Any], int] = {}
    n_unknown = n_stored = n_may_copy = 0
    for i, node in enumerate(graph.order):
        own: int | None = None
        for output, variable in enumerate(node.outputs):
            kind = variable.type
            use, source = _use(node, output)
            # A number by itself does not hold the array, and None holds nothing: the ops that write
            # joins stand for what they take over by that.
            picked = _is_picked(node) and graph.target is not Target.C
            if picked or isinstance(kind, _SMALL):
                continue
            if source is not None:
                number = memory.get(node.inputs[source])
                n_may_copy += not _is_picked(node) and _may_copy(graph, node, use)
            elif isinstance(node.op, WriteSplit) and own is not None:
                number = own
            else:
                nbytes = _allocated(graph, node, variable)
                if nbytes is None:
                    n_unknown += 1
                    n_stored += is_sparse(kind) or not isinstance(kind, TensorType)
                number = own = len(sizes)
                sizes.append(nbytes or 0)
                names.append(graph.variable_name(variable))
                births.append(i)
                deaths.append(i)
            # What an input or a constant holds is there before the call.
            if number is None:
                continue
            memory[variable] = number
            clients = graph.clients.get(variable)
            if not allow_gc or variable in returned or (clients is None and _keeps(graph)):
                death = last
            else:
                death = i if clients is None else graph.positions[clients[-1][0]]
            deaths[number] = max(deaths[number], death)
    changes = [0] * (len(graph.order) + 1)
    for number, nbytes in enumerate(sizes):
        changes[births[number]] += nbytes
        changes[deaths[number] + 1] -= nbytes
    live = np.cumsum(changes[:-1], dtype=object).tolist()
    at = live.index(max(live)) if live else None
    held = [
        (names[n], sizes[n])
        for n in range(len(sizes))
        if at is not None and births[n] <= at <= deaths[n] and sizes[n]
    ]
    held.sort(key=lambda holder: -holder[1])
    inputs = set(graph.fgraph.inputs)
    constants = {v for node in graph.order for v in node.inputs if isinstance(v, Constant)}
    return Peak(
        nbytes=0 if at is None else live[at],
        node=None if at is None else graph.name(graph.order[at]),
        holders=tuple(held[:_HOLDERS]),
        n_unknown=n_unknown,
        n_stored=n_stored,
        n_may_copy=n_may_copy,
        n_inner_graphs=sum(1 for _ in _graphs(graph)) - 1,
        order_is_exact=graph.order_is_exact,
        release_is_sure=graph.function is None or graph.target in (Target.C, Target.PYTHON),
        allow_gc=allow_gc,
        live=tuple(live),
        inputs=sum(graph.nbytes(v) or 0 for v in inputs),
        constants=sum(graph.nbytes(v) or 0 for v in constants),
    )


def _allocated(graph: GraphContext, node: Apply[Any], variable: Variable[Any, Any]) -> int | None:
    """Return the bytes that a node allocates for an output, if that is known."""
    if isinstance(node.op, WriteSplit):
        # The view of no elements is what keeps the memory of the whole result.
        [join] = [client for client, _ in graph.clients[node.outputs[0]]]
        return graph.nbytes(join.outputs[0])
    if not isinstance(variable.type, TensorType):
        # The elements of a list are arrays that live as long as it does.
        return None
    nbytes = graph.nbytes(variable)
    return (
        0
        if not is_sparse(variable.type) and nbytes == np.dtype(variable.type.dtype).itemsize
        else nbytes
    )


def _allows_gc(graph: GraphContext) -> bool:
    if graph.target is Target.NUMBA or graph.function is None:
        return True
    if isinstance(graph.linker, CLinker):
        # One piece of C code, which lets go of its variables when it ends, or later.
        return False
    return bool(getattr(graph.function.vm, "allow_gc", True))


def _keeps(graph: GraphContext) -> bool:
    """Whether a result that nothing reads is held to the end; compiled by Numba, it is not."""
    return graph.target is not Target.NUMBA


def _curve(peak: Peak) -> str:
    """Draw what is live over the run."""
    live = peak.live
    if not peak.nbytes or len(live) < 2:
        return ""
    step = max(1, math.ceil(len(live) / _POINTS))
    tops = [max(live[i : i + step]) for i in range(0, len(live), step)]
    width, height = 800, 120
    across = width / len(tops)
    corners = [f"0,{height}"]
    for i, top in enumerate(tops):
        y = height - height * top / peak.nbytes
        corners += [f"{i * across:.1f},{y:.1f}", f"{(i + 1) * across:.1f},{y:.1f}"]
    corners.append(f"{width},{height}")
    label = f"live memory over the run, up to {size(peak.nbytes)}"
    return (
        f'<svg class="curve" viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}"><polygon points="{" ".join(corners)}"/></svg>'
        f'<p class="faint">{escape(label)}: {count(len(live), "node")} from left to right</p>'
    )
