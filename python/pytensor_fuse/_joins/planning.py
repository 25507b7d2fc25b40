"""Which joins are worth writing straight into their results, and how: the decision alone.

`plan_join` looks at one Join and changes nothing. A stream is *written* if a kernel can work in
place on the part of the result where it belongs; otherwise it is *copied* there, as Join would.

`plan_assignment` does the same for ``set_subtensor`` and ``inc_subtensor`` of slices along the
first axis, and for chains of them: these join what is assigned with the pieces of the tensor
between.
"""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from pytensor.compile.aliasing import Supervisor
from pytensor.graph.basic import Constant
from pytensor.scalar.basic import (
    Abs,
    Add,
    Cast,
    Composite,
    Identity,
    LogicalComparison,
    Mul,
    Neg,
    ScalarMaximum,
    ScalarMinimum,
    Second,
    Sqr,
    Sqrt,
    Sub,
    Switch,
    TrueDiv,
)
from pytensor.tensor.basic import Alloc, AllocEmpty, MakeVector, alloc
from pytensor.tensor.blas import Gemv
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape, Shape_i
from pytensor.tensor.subtensor import IncSubtensor, indices_from_subtensor

from pytensor_fuse._joins.ops.write import VALUE
from pytensor_fuse._pytensor.ops import (
    assigns,
    is_join,
    join_operands,
    joins_all_dims,
    takes_along_first,
)
from pytensor_fuse._pytensor.scalar_kinds import scalar_kinds
from pytensor_fuse._pytensor.targets import Target, is_debugged, max_operands

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph

    from pytensor_fuse._joins.ops.write import Slot

# A result of fewer elements than this is joined as fast by PyTensor: see benchmarks/README.md.
MIN_ELEMENTS = 512
# So many elements of a stream cost less to copy than the part of the result costs to make.
MIN_STREAM_ELEMENTS = 32
# Kernels that write few of the streams must write so many elements to make up for the two ops. If
# they write half of several, that saves as many allocations as these cost; in C, if they write one.
MIN_WRITTEN = 1000
# In Python the ops cost more than the arrays do, until these no longer fit the caches.
MIN_WRITTEN_IN_PYTHON = 500_000
# Numba's loops over parts that are not contiguous are not vectorized. Where that counts, a stream
# has to have so many elements, or so few in a row that they would not be in an array of their own.
MIN_INTERLEAVED = 50_000
_MAX_SHORT_ROW = 3
# PyTensor's C code is slow at writing single elements that lie apart, NumPy's copies are not.
MIN_ROW = 2
# A kernel of these alone is vectorized, so how elements lie in memory counts.
_VECTORIZED = (
    Abs,
    Add,
    Cast,
    Identity,
    LogicalComparison,
    Mul,
    Neg,
    ScalarMaximum,
    ScalarMinimum,
    Second,
    Sqr,
    Sqrt,
    Sub,
    Switch,
    TrueDiv,
)
# Lengths are looked for so many Elemwise nodes up.
_MAX_STEPS = 64


class JoinReason(enum.Enum):
    """Why a stream, or a whole join, is left as it is."""

    WRITTEN = "it is written into the result"
    NO_KERNEL = "nothing computes it that can write it there"
    OTHER_CLIENTS = "something else reads it"
    IN_PLACE = "its kernel overwrites an input already"
    NOT_COMPILED = "its scalar op cannot be compiled inside a kernel"
    DTYPE = "its kernel cannot cast it to the dtype of the result"
    OPERANDS = "its kernel would have too many operands"
    SMALL = "it is too small to gain"
    FEW = "kernels would write few of its streams, which may be too small to gain"
    LENGTH = "its length depends on what another kernel of the join computes"
    WAITS = "other results of its kernel would have to wait for lengths that they do not need"
    INTERLEAVED = "its rows lie apart in the result, which is slower than to copy it there"
    NO_STREAMS = "no stream of it can be written"
    AXIS = "its axis is not known when the graph is compiled"
    DEBUG = "DebugMode takes parts along this axis for overlapping"
    REFUSED = "the graph's features refuse the change"
    BOUNDS = "the bounds of its slice are not constants from the front, or it skips elements"
    SCALARS = "to write single elements takes longer than to copy them"
    BROADCAST = "what is assigned is broadcast, or may be, or of another dtype"
    PIECE = "it is a piece of the tensor that is assigned to"
    OVERWRITES = "the tensor that is assigned to can be overwritten, which copies less"


# A dimension's length: the variable and the dimension that it is taken from, or VALUE if it is the
# value of the variable; or None and the length.
Source = tuple["Variable[Any, Any] | None", int]


@dataclass(frozen=True, eq=False)
class Stream:
    """One operand of a join.

    Attributes
    ----------
    variable
        The operand.
    reason
        `JoinReason.WRITTEN`, or why it is copied.
    kernel, output
        The node that computes it and which output, if it is written: an Elemwise, an Alloc, or a
        product of a matrix and a vector.
    shape
        Where the lengths of the dimensions come from: those of the kernel's output if it is
        written, else its own.
    slot
        The slice of the result that it is assigned to, if it is assigned.
    added
        What the kernel has to add to it, if anything.
    """

    variable: Variable[Any, Any]
    reason: JoinReason
    kernel: Apply[Any] | None
    output: int
    shape: tuple[Source, ...]
    slot: Slot | None = None
    added: Variable[Any, Any] | None = None

    @property
    def written(self) -> bool:
        """Whether a kernel writes it."""
        return self.reason is JoinReason.WRITTEN


@dataclass(frozen=True, eq=False)
class JoinPlan:
    """What to do about one join.

    Attributes
    ----------
    node
        The Join, or the last assignment of a chain.
    axis
        Its axis.
    streams
        Its operands, those of joins that feed nothing but it in their places.
    reason
        `JoinReason.WRITTEN`, or why it stays.
    total
        Where the length comes from that the result must have, if anything is assigned.
    """

    node: Apply[Any]
    axis: int
    streams: tuple[Stream, ...]
    reason: JoinReason
    total: Source | None = None

    @property
    def eliminated(self) -> bool:
        """Whether the join is to be replaced."""
        return self.reason is JoinReason.WRITTEN


def plan_join(fgraph: FunctionGraph, node: Apply[Any], target: Target) -> JoinPlan:
    """Decide which streams of a Join are written into its result.

    Time and memory are linear in the size of the graph, mostly in the number of streams.
    """
    axis, _ = join_operands(node)
    if axis is None:
        return JoinPlan(node, 0, (), JoinReason.AXIS)
    joined = node.outputs[0].type
    operands = _flattened(fgraph, node, axis)
    if is_debugged(fgraph) and any(n != 1 for n in joined.shape[:axis]):
        return JoinPlan(node, axis, _all_copied(operands, JoinReason.DEBUG), JoinReason.DEBUG)
    if _is_small(joined.shape):
        return JoinPlan(node, axis, _all_copied(operands, JoinReason.SMALL), JoinReason.SMALL)
    counts = Counter(operands)
    streams = [
        _stream(fgraph, operand, counts[operand], joined.dtype, joined.ndim, target)
        for operand in operands
    ]
    if any(n != 1 for n in joined.shape[:axis]):
        streams = [
            _copied(stream.variable, JoinReason.INTERLEAVED)
            if stream.written and _interleaves(stream, axis, target)
            else stream
            for stream in streams
        ]
    streams = _independent(fgraph, _within_operands(streams, target))
    n_written = sum(stream.written for stream in streams)
    if n_written == 0:
        reason = JoinReason.NO_STREAMS
    elif _n_written(streams) < _least(fgraph, streams, joined.ndim, target):
        reason = JoinReason.FEW
    else:
        reason = JoinReason.WRITTEN
    return JoinPlan(node, axis, tuple(streams), reason)


def is_vector_of_kernels(node: Apply[Any]) -> bool:
    """Whether a node makes a vector of numbers that kernels compute, which it copies for less.

    A part, and a kernel that reads it as an array, cost more than the copies of the numbers: see
    benchmarks/README.md. Vectors of shapes are none.
    """
    return (
        isinstance(node.op, MakeVector)
        and node.outputs[0].type.dtype.startswith("float")
        and any(v.owner is not None and isinstance(v.owner.op, Elemwise) for v in node.inputs)
    )


def plan_assignment(fgraph: FunctionGraph, node: Apply[Any], target: Target) -> JoinPlan | None:
    """Decide the same about an assignment to a slice, and those to the same tensor before it.

    Returns
    -------
    JoinPlan or None
        None if ``node`` is no assignment to a slice along the first axis.
    """
    steps, tensor = _assignments(fgraph, node)
    if not steps:
        return None if _slice(node) is None else JoinPlan(node, 0, (), JoinReason.BOUNDS)
    kind = node.outputs[0].type
    if _is_small(kind.shape):
        return JoinPlan(node, 0, (), JoinReason.SMALL)
    streams: list[Stream] = []
    place = 0
    for start, stop, step in steps:
        value = step.inputs[1]
        if start > place:
            piece = _piece(tensor, place, start)
            streams.append(_filled(piece, piece, kind.dtype))
        stream = _stream(fgraph, value, 1, kind.dtype, kind.ndim, target)
        added = None if step.op.set_instead_of_inc else _piece(tensor, start, stop)
        if not _fits(value.type, kind, adds=added is not None):
            return JoinPlan(node, 0, (stream,), JoinReason.BROADCAST)
        if added is not None and target is Target.PYTHON:
            return JoinPlan(node, 0, (stream,), JoinReason.NO_KERNEL)
        if added is not None and (not stream.written or stream.shape != _own(value, stream)):
            return JoinPlan(node, 0, (stream,), stream.reason)
        streams.append(replace(stream, slot=(start, stop), added=added))
        if stop is None:
            break
        place = stop
    else:
        if kind.shape[0] is None or place < kind.shape[0]:
            piece = _piece(tensor, place, None)
            streams.append(_filled(piece, piece, kind.dtype))
    total = _length(tensor, 0)
    streams = _independent(fgraph, _within_operands(streams, target), (total,))
    copied_sum = any(stream.added is not None and not stream.written for stream in streams)
    # Pieces and sums are compared with the tensor, streams alone are not.
    compared = any(stream.slot is None or stream.added is not None for stream in streams)
    if copied_sum or not any(stream.written for stream in streams):
        reason = JoinReason.NO_STREAMS
    elif not compared and None in kind.shape[1:]:
        reason = JoinReason.BROADCAST
    elif _n_written(streams) < max(MIN_WRITTEN, _least(fgraph, streams, kind.ndim, target)):
        reason = JoinReason.FEW
    elif _overwrites(fgraph, tensor, streams):
        reason = JoinReason.OVERWRITES
    else:
        reason = JoinReason.WRITTEN
    return JoinPlan(node, 0, tuple(streams), reason, total)


def _assignments(
    fgraph: FunctionGraph, node: Apply[Any]
) -> tuple[list[tuple[int, int | None, Apply[Any]]], Variable[Any, Any]]:
    """Return the assignments of a chain in the order of their slices, and what they begin with.

    The chain ends at a slice that another of it overlaps.
    """
    steps: list[tuple[int, int | None, Apply[Any]]] = []
    tensor = node.outputs[0]
    while True:
        inner = tensor.owner
        if inner is None or (steps and len(fgraph.clients[tensor]) != 1):
            break
        bounds = _bounds(inner)
        if bounds is None or any(_overlap(bounds, (a, b)) for a, b, _ in steps):
            break
        steps.append((*bounds, inner))
        tensor = inner.inputs[0]
    return sorted(steps, key=lambda step: step[0]), tensor


def _bounds(node: Apply[Any]) -> Slot | None:
    """Return the slice along the first axis that a node assigns to, if it does that."""
    index = _slice(node)
    if index is None:
        return None
    numbers = [_number(bound) for bound in (index.start, index.stop, index.step)]
    if any(
        bound is not None and n is None for bound, n in zip(_parts(index), numbers, strict=True)
    ):
        return None
    start, stop, step = numbers
    start = start or 0
    length = node.inputs[0].type.shape[0]
    if length is not None:
        start, stop, _ = slice(start, stop).indices(length)
    # Of a tensor that is too short, no piece may be in two slices.
    if step not in (None, 1) or start < 0 or (stop is not None and stop <= start):
        return None
    return start, stop


def _slice(node: Apply[Any]) -> slice | None:
    """Return the slice along the first axis, and no other, that a node assigns to."""
    if not isinstance(node.op, IncSubtensor) or node.op.inplace or len(node.op.idx_list) != 1:
        return None
    [index] = indices_from_subtensor(node.inputs[2:], node.op.idx_list)
    return index if isinstance(index, slice) else None


def _parts(index: slice) -> tuple[Any, Any, Any]:
    return index.start, index.stop, index.step


def _number(bound: Any) -> int | None:
    if isinstance(bound, Constant):
        return None if bound.data is None else int(bound.data)
    owner = getattr(bound, "owner", None)
    if owner is not None and len(owner.inputs) == 1 and isinstance(owner.inputs[0], Constant):
        # A conversion between the kinds of scalars.
        return int(owner.inputs[0].data)
    return bound if isinstance(bound, int) else None


def _overlap(one: Slot, other: Slot) -> bool:
    (a, b), (c, d) = one, other
    return (d is None or a < d) and (b is None or c < b)


def _piece(tensor: Variable[Any, Any], start: int, stop: int | None) -> Variable[Any, Any]:
    """Return a slice of a tensor; of one that is filled with a value, by filling it alone."""
    node = tensor.owner
    length = tensor.type.shape[0]
    if node is not None and isinstance(node.op, Alloc) and length is not None:
        value, _, *others = node.inputs
        if value.type.ndim == 0:
            filled: Variable[Any, Any] = cast("Any", alloc)(
                value, len(range(length)[start:stop]), *others
            )
            return filled
    piece: Variable[Any, Any] = cast("Any", tensor)[start:stop]
    return piece


def _fits(value: Any, tensor: Any, *, adds: bool) -> bool:
    """Whether values of one type are assigned to slices of another without being broadcast.

    PyTensor also broadcasts dimensions that only turn out to be of length 1 when the function runs.
    """
    return (
        value.ndim == tensor.ndim
        and None not in value.shape
        and not value.broadcastable[0]
        and value.broadcastable[1:] == tensor.broadcastable[1:]
        and (value.dtype == tensor.dtype or not adds)
    )


def _own(value: Variable[Any, Any], stream: Stream) -> tuple[Source, ...]:
    """Return the shape of a stream if it is a view of nothing, else no shape."""
    kernel = stream.kernel
    return stream.shape if kernel is not None and value.owner is kernel else ()


def _overwrites(
    fgraph: FunctionGraph, tensor: Variable[Any, Any], streams: Sequence[Stream]
) -> bool:
    """Whether PyTensor can assign in place, and that copies no more than the pieces would."""
    if len(fgraph.clients[tensor]) > 1 or _is_protected(fgraph, tensor):
        return False
    copied = [_n_elements(s.variable.type.shape) for s in streams if not s.written]
    if None in copied:
        return True
    return sum(n for n in copied if n) > _n_written(streams)


def _is_protected(fgraph: FunctionGraph, variable: Variable[Any, Any]) -> bool:
    """Whether the function must not overwrite the memory of a variable."""
    root = variable
    while root.owner is not None:
        viewed = root.owner.op.view_map.get(root.owner.outputs.index(root))
        if not viewed:
            return False
        root = root.owner.inputs[viewed[0]]
    protected = (f.protected for f in fgraph._features if isinstance(f, Supervisor))
    return isinstance(root, Constant) or any(root in variables for variables in protected)


def _n_written(streams: Sequence[Stream]) -> int:
    """Return how many elements kernels are known to write, if nothing fails."""
    total = 0
    for stream in streams:
        shape = stream.variable.type.shape
        if stream.slot is not None and shape[0] is None and stream.slot[1] is not None:
            shape = (stream.slot[1] - stream.slot[0], *(n or 1 for n in shape[1:]))
        total += (_n_elements(shape) or 0) if stream.written else 0
    return total


def _is_small(shape: Sequence[int | None]) -> bool:
    total = _n_elements(shape)
    return total is not None and total < MIN_ELEMENTS


def _flattened(
    fgraph: FunctionGraph, node: Apply[Any], axis: int
) -> tuple[Variable[Any, Any], ...]:
    """Return the streams of a join, with those of joins that only it reads in their places."""
    operands: list[Variable[Any, Any]] = []
    pending = list(reversed(join_operands(node)[1]))
    dtype = node.outputs[0].type.dtype
    while pending:
        operand = pending.pop()
        inner = operand.owner
        if (
            inner is not None
            and is_join(inner)
            and operand.type.dtype == dtype
            and len(fgraph.clients[operand]) == 1
            and join_operands(inner)[0] == axis
        ):
            pending.extend(reversed(join_operands(inner)[1]))
        else:
            operands.append(operand)
    return tuple(operands)


def _stream(
    fgraph: FunctionGraph,
    operand: Variable[Any, Any],
    count: int,
    dtype: str,
    ndim: int,
    target: Target,
) -> Stream:
    variable = operand
    if count > 1 or len(fgraph.clients[variable]) != 1:
        return _copied(operand, JoinReason.OTHER_CLIENTS)
    if ndim == 1:
        variable = _raveled(variable)
        if len(fgraph.clients[variable]) != 1:
            return _copied(operand, JoinReason.OTHER_CLIENTS)
    kernel = variable.owner
    if kernel is not None and isinstance(kernel.op, Alloc):
        return _filled(operand, variable, dtype)
    is_product = kernel is not None and _is_product(kernel) and variable.type.dtype == dtype
    if kernel is None or not (is_product or isinstance(kernel.op, Elemwise)):
        return _copied(operand, JoinReason.NO_KERNEL)
    size = _n_elements(variable.type.shape)
    if size is not None and size < MIN_STREAM_ELEMENTS:
        return _copied(operand, JoinReason.SMALL)
    shape = tuple(_length(variable, d) for d in range(variable.type.ndim))
    if is_product:
        return Stream(operand, JoinReason.WRITTEN, kernel, 0, shape)
    output = kernel.outputs.index(variable)
    if output in kernel.op.inplace_pattern:
        return _copied(operand, JoinReason.IN_PLACE)
    if not _compiles(kernel, target):
        return _copied(operand, JoinReason.NOT_COMPILED)
    # Inside a kernel Python computes with its own numbers, not as NumPy's function for an op does.
    if variable.type.dtype != dtype and (
        target is Target.PYTHON or not _casts(variable.type.dtype, dtype)
    ):
        return _copied(operand, JoinReason.DTYPE)
    return Stream(operand, JoinReason.WRITTEN, kernel, output, shape)


def _least(fgraph: FunctionGraph, streams: Sequence[Stream], ndim: int, target: Target) -> int:
    """Return how many elements kernels have to be known to write, for what they save."""
    if target is Target.PYTHON:
        return MIN_WRITTEN_IN_PYTHON
    if target is not Target.NUMBA:
        return 0
    kernels = dict.fromkeys(stream.kernel for stream in streams if stream.kernel is not None)
    n_in_place = sum(_can_overwrite(fgraph, kernel) for kernel in kernels)
    n_saved = sum(stream.written for stream in streams) - n_in_place
    is_few = n_saved < (2 if ndim == 1 else 3) or 2 * n_saved < len(streams)
    # Numba's Join takes single elements as scalars, for which nothing is allocated.
    has_scalars = any(_n_elements(s.variable.type.shape) == 1 for s in streams if not s.written)
    return MIN_WRITTEN if is_few or has_scalars else 0


def _can_overwrite(fgraph: FunctionGraph, kernel: Apply[Any]) -> bool:
    """Whether PyTensor can let a kernel overwrite an input, and so allocate an output less."""
    if not isinstance(kernel.op, Elemwise):
        return False
    kinds = [(v.type.dtype, v.type.broadcastable) for v in kernel.outputs]
    taken = kernel.op.inplace_pattern.values()
    return any(
        v.owner is not None
        and i not in taken
        and not v.owner.op.view_map
        and len(fgraph.clients[v]) == 1
        and (v.type.dtype, v.type.broadcastable) in kinds
        for i, v in enumerate(kernel.inputs)
    )


def _interleaves(stream: Stream, axis: int, target: Target) -> bool:
    """Whether a kernel takes longer over a part of separate rows than it saves."""
    shape = stream.variable.type.shape
    row = _n_elements(shape[axis:])
    if target is not Target.NUMBA:
        return row is not None and row < MIN_ROW
    return (
        (row is None or row > _MAX_SHORT_ROW)
        and (_n_elements(shape) or 0) < MIN_INTERLEAVED
        and _is_vectorized(cast("Apply[Any]", stream.kernel))
    )


def _is_vectorized(kernel: Apply[Any]) -> bool:
    if not isinstance(kernel.op, Elemwise):
        return False
    scalar_op = kernel.op.scalar_op
    if isinstance(scalar_op, Composite):
        nodes = cast("FrozenFunctionGraph", scalar_op.fgraph).toposort()
        return all(isinstance(node.op, _VECTORIZED) for node in nodes)
    return isinstance(scalar_op, _VECTORIZED)


def _is_product(node: Apply[Any]) -> bool:
    """Whether a node is a product that PyTensor's BLAS op can write into memory of any values."""
    if not isinstance(node.op, Gemv) or node.op.inplace:
        return False
    memory, *_, scale = node.inputs
    return (
        memory.owner is not None
        and isinstance(memory.owner.op, AllocEmpty)
        and isinstance(scale, Constant)
        and not np.any(scale.data)
    )


def _filled(operand: Variable[Any, Any], variable: Variable[Any, Any], dtype: str) -> Stream:
    """Return the stream that a number fills, which needs no kernel."""
    fill = variable.owner
    if fill is None or not isinstance(fill.op, Alloc):
        return _copied(operand, JoinReason.PIECE)
    if not all(n == 1 for n in fill.inputs[0].type.shape):
        return _copied(operand, JoinReason.NO_KERNEL)
    if not _casts(variable.type.dtype, dtype):
        return _copied(operand, JoinReason.DTYPE)
    shape = tuple(_length(variable, d) for d in range(variable.type.ndim))
    return Stream(operand, JoinReason.WRITTEN, fill, 0, shape)


def _raveled(variable: Variable[Any, Any]) -> Variable[Any, Any]:
    """Return what a vector is the raveled view of, or the vector itself."""
    node = variable.owner
    if (
        node is not None
        and isinstance(node.op, Reshape)
        and isinstance(node.inputs[1], Constant)
        and np.array_equal(node.inputs[1].data, [-1])
    ) or (node is not None and joins_all_dims(node)):
        inner: Variable[Any, Any] = node.inputs[0]
        return inner
    return variable


def _compiles(kernel: Apply[Any], target: Target) -> bool:
    scalar_op = kernel.op.scalar_op
    if isinstance(scalar_op, Composite):
        return not (target is not Target.NUMBA and _has_float16(kernel))
    if _has_float16(kernel):
        return False
    if target is Target.PYTHON:
        return True
    [kind] = scalar_kinds([kernel])
    return kind is not None and kind.compiles(target)


def _has_float16(kernel: Apply[Any]) -> bool:
    return any(v.type.dtype == "float16" for v in (*kernel.inputs, *kernel.outputs))


def _casts(dtype: str, joined: str) -> bool:
    return dtype == joined or (
        not {dtype, joined} & {"float16", "bool"}
        and not dtype.startswith("complex")
        and not joined.startswith("complex")
    )


def _length(variable: Variable[Any, Any], dim: int) -> Source:
    """Return where the length of a dimension can be read without computing ``variable``.

    Of an Elemwise it is that of any operand that is not broadcast there: the kernel itself fails if
    these differ. An operand that is an input of the graph is preferred, for it is there from the
    start, then one that is not indexed, so that PyTensor can still merge the indexing into the
    kernel.
    """
    for _ in range(_MAX_STEPS):
        static = variable.type.shape[dim]
        if static is not None:
            return None, static
        node = variable.owner
        if node is None:
            break
        if isinstance(node.op, Elemwise):
            operands = [v for v in node.inputs if not v.type.broadcastable[dim]]
            if not operands:
                break
            variable = min(operands, key=_rank)
        elif isinstance(node.op, DimShuffle):
            [variable] = node.inputs
            # A dimension that it adds has a known length.
            dim = int(node.op.new_order[dim])
        elif _is_take(node):
            variable, dim = (node.inputs[1], 0) if dim == 0 else (node.inputs[0], dim)
        elif assigns(node.op):
            variable = node.inputs[0]
        elif isinstance(node.op, CAReduce):
            [variable] = node.inputs
            reduced = range(variable.type.ndim) if node.op.axis is None else node.op.axis
            dim = [d for d in range(variable.type.ndim) if d not in reduced][dim]
        elif isinstance(node.op, Gemv):
            variable = node.inputs[0]
        elif isinstance(node.op, Alloc | AllocEmpty):
            given = node.inputs[dim + isinstance(node.op, Alloc)]
            if _is_length(given):
                variable, dim = given.owner.inputs[0], given.owner.op.i
            elif given.type.dtype == "int64":
                return given, VALUE
            else:
                break
        else:
            break
    return variable, dim


def _is_length(variable: Variable[Any, Any]) -> bool:
    return variable.owner is not None and isinstance(variable.owner.op, Shape_i)


def _rank(variable: Variable[Any, Any]) -> int:
    if variable.owner is None:
        return 0
    return 2 if _is_take(variable.owner) else 1


def _is_take(node: Apply[Any]) -> bool:
    """Whether a node is ``x[index]``, the index being a vector of positions."""
    return (
        takes_along_first(node.op)
        and len(node.inputs) == 2
        and node.inputs[1].type.ndim == 1
        and node.inputs[1].type.dtype != "bool"
    )


def _within_operands(streams: list[Stream], target: Target) -> list[Stream]:
    """Copy streams whose kernels cannot take an input more for each that they write."""
    extra: Counter[Apply[Any]] = Counter()
    limit = max_operands(target)
    result = []
    for stream in streams:
        kernel = stream.kernel
        if kernel is not None:
            n_operands = len(kernel.inputs) + len(kernel.outputs) + extra[kernel]
            if n_operands + (stream.added is not None) >= limit:
                left = _copied(stream.variable, JoinReason.OPERANDS)
                result.append(replace(left, slot=stream.slot, added=stream.added))
                continue
            extra[kernel] += 1 if stream.added is None else 2
        result.append(stream)
    return result


def _independent(
    fgraph: FunctionGraph, streams: list[Stream], others: tuple[Source, ...] = ()
) -> list[Stream]:
    """Copy streams of kernels that cannot wait until all lengths of the join are known.

    The result is made before kernels write there: no length may depend on them, and what else they
    compute, which may be all that is asked for, must not come to depend on a length.
    """
    while True:
        lengths = chain(others, *(stream.shape for stream in streams))
        sources = [source for source, _ in lengths if source is not None]
        needed = _ancestors(sources)
        made = {source.owner for source in sources if source.owner is not None}
        outputs: dict[Apply[Any], set[int]] = {}
        for stream in streams:
            if stream.kernel is not None:
                outputs.setdefault(stream.kernel, set()).add(stream.output)
        refused = {
            kernel: JoinReason.LENGTH if kernel in needed else JoinReason.WAITS
            for kernel, written in outputs.items()
            if kernel in needed
            or (is_read_elsewhere(fgraph, kernel, written) and made - _ancestors(kernel.inputs))
        }
        if not refused:
            return streams
        streams = [
            replace(
                _copied(stream.variable, refused[stream.kernel]),
                slot=stream.slot,
                added=stream.added,
            )
            if stream.kernel in refused
            else stream
            for stream in streams
        ]


def is_read_elsewhere(fgraph: FunctionGraph, kernel: Apply[Any], written: set[int]) -> bool:
    """Whether anything reads outputs of a kernel other than those that it writes into a join."""
    return any(fgraph.clients[v] for i, v in enumerate(kernel.outputs) if i not in written)


def _ancestors(variables: Iterable[Variable[Any, Any]]) -> set[Apply[Any]]:
    nodes: set[Apply[Any]] = set()
    pending = [variable.owner for variable in variables if variable.owner is not None]
    while pending:
        node = pending.pop()
        if node not in nodes:
            nodes.add(node)
            pending.extend(v.owner for v in node.inputs if v.owner is not None)
    return nodes


def _copied(operand: Variable[Any, Any], reason: JoinReason) -> Stream:
    shape = tuple(_length(operand, d) for d in range(operand.type.ndim))
    return Stream(operand, reason, None, 0, shape)


def _all_copied(operands: Sequence[Variable[Any, Any]], reason: JoinReason) -> tuple[Stream, ...]:
    return tuple(_copied(operand, reason) for operand in operands)


def _n_elements(shape: Sequence[int | None]) -> int | None:
    total = 1
    for length in shape:
        if length is None:
            return None
        total *= length
    return total
