"""Which joins are worth writing straight into their results, and how: the decision alone.

`plan_join` looks at one Join and changes nothing. A stream is *written* if a kernel can work in
place on the part of the result where it belongs; otherwise it is *copied* there, as Join would.
"""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape

from pytensor_fuse import _compat
from pytensor_fuse._targets import Target, max_operands, scalar_kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph

# A result of fewer elements than this is joined as fast by PyTensor: see benchmarks/README.md.
MIN_ELEMENTS = 512
# So many elements of a stream cost less to copy than the part of the result costs to make.
MIN_STREAM_ELEMENTS = 32
# Lengths are looked for so many Elemwise nodes up.
_MAX_STEPS = 64


class JoinReason(enum.Enum):
    """Why a stream, or a whole join, is left as it is."""

    WRITTEN = "its kernel writes it into the result"
    NO_KERNEL = "no Elemwise kernel computes it"
    OTHER_CLIENTS = "something else reads it"
    IN_PLACE = "its kernel overwrites an input already"
    NOT_COMPILED = "its scalar op cannot be compiled inside a kernel"
    DTYPE = "its kernel cannot cast it to the dtype of the result"
    OPERANDS = "its kernel would have too many operands"
    SMALL = "it is too small to gain"
    LENGTH = "its length depends on what another kernel of the join computes"
    NO_STREAMS = "no stream of it can be written"
    AXIS = "its axis is not known when the graph is compiled"
    DEBUG = "DebugMode takes parts along this axis for overlapping"
    REFUSED = "the graph's features refuse the change"
    OTHER_PASS = "it is gone: another pass has changed the graph since"


# A dimension's length: the variable and the dimension that it is taken from, or its value.
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
        The node that computes it and which output, if it is written.
    shape
        Where the lengths of the dimensions come from: those of the kernel's output if it is
        written, else its own.
    """

    variable: Variable[Any, Any]
    reason: JoinReason
    kernel: Apply[Any] | None
    output: int
    shape: tuple[Source, ...]

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
        The Join.
    axis
        Its axis.
    streams
        Its operands, those of joins that feed nothing but it in their places.
    reason
        `JoinReason.WRITTEN`, or why it stays.
    """

    node: Apply[Any]
    axis: int
    streams: tuple[Stream, ...]
    reason: JoinReason

    @property
    def eliminated(self) -> bool:
        """Whether the join is to be replaced."""
        return self.reason is JoinReason.WRITTEN


def plan_join(fgraph: FunctionGraph, node: Apply[Any], target: Target) -> JoinPlan:
    """Decide which streams of a Join are written into its result.

    Time and memory are linear in the size of the graph, mostly in the number of streams.
    """
    axis, _ = _compat.join_operands(node)
    if axis is None:
        return JoinPlan(node, 0, (), JoinReason.AXIS)
    joined = node.outputs[0].type
    operands = _flattened(fgraph, node, axis)
    if _compat.is_debugged(fgraph) and any(n != 1 for n in joined.shape[:axis]):
        return JoinPlan(node, axis, _all_copied(operands, JoinReason.DEBUG), JoinReason.DEBUG)
    total = _n_elements(joined.shape)
    if total is not None and total < MIN_ELEMENTS:
        return JoinPlan(node, axis, _all_copied(operands, JoinReason.SMALL), JoinReason.SMALL)
    counts = Counter(operands)
    streams = [
        _stream(fgraph, operand, counts[operand], joined.dtype, joined.ndim, target)
        for operand in operands
    ]
    streams = _independent(_within_operands(streams, target))
    wins = any(stream.written for stream in streams)
    return JoinPlan(
        node,
        axis,
        tuple(streams),
        JoinReason.WRITTEN if wins else JoinReason.NO_STREAMS,
    )


def _flattened(
    fgraph: FunctionGraph, node: Apply[Any], axis: int
) -> tuple[Variable[Any, Any], ...]:
    """Return the streams of a join, with those of joins that only it reads in their places."""
    operands: list[Variable[Any, Any]] = []
    pending = list(reversed(_compat.join_operands(node)[1]))
    dtype = node.outputs[0].type.dtype
    while pending:
        operand = pending.pop()
        inner = operand.owner
        if (
            inner is not None
            and _compat.is_join(inner)
            and operand.type.dtype == dtype
            and len(fgraph.clients[operand]) == 1
            and _compat.join_operands(inner)[0] == axis
        ):
            pending.extend(reversed(_compat.join_operands(inner)[1]))
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
    if kernel is None or not isinstance(kernel.op, Elemwise):
        return _copied(operand, JoinReason.NO_KERNEL)
    size = _n_elements(variable.type.shape)
    if size is not None and size < MIN_STREAM_ELEMENTS:
        return _copied(operand, JoinReason.SMALL)
    output = kernel.outputs.index(variable)
    if output in kernel.op.inplace_pattern:
        return _copied(operand, JoinReason.IN_PLACE)
    if not _compiles(kernel, target):
        return _copied(operand, JoinReason.NOT_COMPILED)
    if not _casts(variable.type.dtype, dtype):
        return _copied(operand, JoinReason.DTYPE)
    shape = tuple(_length(variable, d) for d in range(variable.type.ndim))
    return Stream(operand, JoinReason.WRITTEN, kernel, output, shape)


def _raveled(variable: Variable[Any, Any]) -> Variable[Any, Any]:
    """Return what a vector is the raveled view of, or the vector itself."""
    node = variable.owner
    if (
        node is not None
        and isinstance(node.op, Reshape)
        and isinstance(node.inputs[1], Constant)
        and np.array_equal(node.inputs[1].data, [-1])
    ) or (node is not None and _compat.joins_all_dims(node)):
        inner: Variable[Any, Any] = node.inputs[0]
        return inner
    return variable


def _compiles(kernel: Apply[Any], target: Target) -> bool:
    scalar_op = kernel.op.scalar_op
    if isinstance(scalar_op, Composite):
        return not (target is not Target.NUMBA and _has_float16(kernel))
    if target is Target.PYTHON or _has_float16(kernel):
        # NumPy's own function for one scalar op beats a kernel that is run in Python.
        return False
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
            variable = min(operands, key=_rank)
        elif isinstance(node.op, DimShuffle):
            [variable] = node.inputs
            # A dimension that it adds has a known length.
            dim = int(node.op.new_order[dim])
        elif _is_take(node):
            variable, dim = (node.inputs[1], 0) if dim == 0 else (node.inputs[0], dim)
        else:
            break
    return variable, dim


def _rank(variable: Variable[Any, Any]) -> int:
    if variable.owner is None:
        return 0
    return 2 if _is_take(variable.owner) else 1


def _is_take(node: Apply[Any]) -> bool:
    """Whether a node is ``x[index]``, the index being a vector of positions."""
    return (
        _compat.takes_along_first(node.op)
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
            if n_operands >= limit:
                result.append(_copied(stream.variable, JoinReason.OPERANDS))
                continue
            extra[kernel] += 1
        result.append(stream)
    return result


def _independent(streams: list[Stream]) -> list[Stream]:
    """Copy streams of kernels that some length depends on: the result is made before they run."""
    while True:
        kernels = {stream.kernel for stream in streams if stream.kernel is not None}
        needed = _ancestors(
            source for stream in streams for source, _ in stream.shape if source is not None
        )
        if not kernels & needed:
            return streams
        streams = [
            _copied(stream.variable, JoinReason.LENGTH) if stream.kernel in needed else stream
            for stream in streams
        ]


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
    shape = tuple(
        (operand, d) if n is None else (None, n) for d, n in enumerate(operand.type.shape)
    )
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
