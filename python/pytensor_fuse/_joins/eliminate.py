"""What the pass `join_buffer_elimination` does: kernels of joined streams write into the result.

`_joins` decides, `_write_ops` has the ops; here the graph is changed, each join wholly or not at
all.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from pytensor.compile.executor import Function
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.graph.utils import InconsistencyError
from pytensor.scalar.basic import Composite, get_scalar_type
from pytensor.scalar.basic import add as scalar_add
from pytensor.scalar.basic import cast as scalar_cast
from pytensor.tensor.basic import Alloc
from pytensor.tensor.blas import Gemv
from pytensor.tensor.rewriting.elemwise import InplaceElemwiseOptimizer

from pytensor_fuse._joins.ops.write import (
    STATIC,
    Length,
    WriteElemwise,
    WriteFill,
    WriteJoin,
    WriteSplit,
)
from pytensor_fuse._joins.planning import (
    JoinPlan,
    JoinReason,
    Source,
    Stream,
    is_read_elsewhere,
    is_vector_of_kernels,
    plan_assignment,
    plan_join,
)
from pytensor_fuse._pytensor.ops import is_join

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph

    from pytensor_fuse._pytensor.targets import Target

_NAME = "join_buffer_elimination"


@dataclass(frozen=True)
class JoinReport:
    """What became of one join.

    Attributes
    ----------
    join
        Its printed name.
    axis
        Its axis.
    reason
        `JoinReason.WRITTEN` if it was eliminated, else why not.
    streams
        The same for each stream.
    """

    join: str
    axis: int
    reason: JoinReason
    streams: tuple[JoinReason, ...]

    @property
    def eliminated(self) -> bool:
        """Whether kernels write into the result."""
        return self.reason is JoinReason.WRITTEN

    def __str__(self) -> str:
        written = sum(stream is JoinReason.WRITTEN for stream in self.streams)
        head = f"{self.join}: "
        if self.eliminated:
            head += f"eliminated, {written} of {len(self.streams)} streams written"
        else:
            head += f"kept: {self.reason.value}"
        return "\n".join(
            [
                head,
                *(
                    f"  stream {i} is copied: {stream.value}"
                    for i, stream in enumerate(self.streams)
                    if stream is not JoinReason.WRITTEN
                ),
            ]
        )


_reports: WeakKeyDictionary[FunctionGraph, tuple[JoinReport, ...]] = WeakKeyDictionary()


def explain_joins(compiled: Function | FunctionGraph) -> tuple[JoinReport, ...]:
    """Return what `join_buffer_elimination` did about each join of a graph, and why.

    Parameters
    ----------
    compiled
        A compiled function, or its graph. Empty for one that was compiled without the pass, or
        unpickled.
    """
    fgraph = compiled.maker.fgraph if isinstance(compiled, Function) else compiled
    return _reports.get(fgraph, ())


def eliminate_joins(
    fgraph: FunctionGraph, target: Target, *, reuse: bool = False
) -> tuple[JoinReport, ...]:
    """Let kernels write into the results of joins, and return a report on each join.

    The outermost of nested joins comes first and takes the others in. A join that a feature of
    ``fgraph`` refuses to have changed stays as it is. A graph of m joins and n nodes takes time
    O(m + n) as long as all changes together are accepted, which is asked once, and O(mn) otherwise,
    when it is asked for each join. With ``reuse`` C code keeps the results' memory.
    """
    start = fgraph.checkpoint()
    try:
        reports = _eliminate_each(fgraph, target, _Writers(fgraph, reuse), fgraph.replace_all)
        fgraph.validate()
    except BaseException as error:
        fgraph.revert(start)
        if not isinstance(error, InconsistencyError):
            raise
        reports = _eliminate_each(
            fgraph, target, _Writers(fgraph, reuse), _replacing_if_valid(fgraph)
        )
    for node in fgraph.toposort():
        if isinstance(node.op, WriteElemwise):
            _overwrite_inputs(fgraph, node)
    _reports[fgraph] = reports
    return reports


def _eliminate_each(
    fgraph: FunctionGraph,
    target: Target,
    writers: _Writers,
    replace: Callable[..., bool | None],
) -> tuple[JoinReport, ...]:
    """Eliminate joins by ``replace``, which may return False if it leaves the graph as it was."""
    reports = []
    for node in reversed(fgraph.toposort()):
        if node not in fgraph.apply_nodes:
            continue
        if is_join(node):
            plan = plan_join(fgraph, node, target)
        elif is_vector_of_kernels(node):
            plan = JoinPlan(node, 0, (), JoinReason.SCALARS)
        elif (assignment := plan_assignment(fgraph, node, target)) is not None:
            plan = assignment
        else:
            continue
        reason = plan.reason
        if plan.eliminated and replace(writers.changes(plan), reason=_NAME) is False:
            reason = JoinReason.REFUSED
        reports.append(
            JoinReport(str(node), plan.axis, reason, tuple(s.reason for s in plan.streams))
        )
    return tuple(reports)


def _replacing_if_valid(fgraph: FunctionGraph) -> Callable[..., bool]:
    def replace(changes: Any, reason: str) -> bool:
        try:
            fgraph.replace_all_validate(changes, reason=reason)
        except InconsistencyError:
            return False
        return True

    return replace


def _overwrite_inputs(fgraph: FunctionGraph, node: Apply[Any]) -> None:
    """Let the other outputs of a kernel that writes into parts overwrite its inputs.

    PyTensor's pass that does this leaves nodes alone that destroy something already. The first
    choice for an output is the shared variable that it updates.
    """
    if len(node.op.inplace_pattern) == len(node.outputs):
        return
    stock = InplaceElemwiseOptimizer()
    protected = stock._get_protected_inputs(fgraph)
    updated = {
        fgraph.outputs[i]: fgraph.inputs[j]
        for i, j in cast("dict[int, int]", fgraph.update_mapping or {}).items()
    }
    pairs = sorted(
        (
            pair
            for pair in stock.filter_candidate_pairs(fgraph, node, protected)
            if pair[0][0] not in node.op.inplace_pattern
        ),
        key=lambda pair: updated.get(pair[0][1]) is not pair[1][1],
    )
    for (output, _), (position, _) in pairs:
        pattern = node.op.inplace_pattern
        if output in pattern or position in pattern.values():
            continue
        make: Any = WriteElemwise
        op = make(node.op.scalar_op, {**pattern, output: position}, openmp=node.op.openmp)
        new = op.make_node(*node.inputs)
        try:
            fgraph.replace_all_validate(
                list(zip(node.outputs, new.outputs, strict=True)), reason=_NAME
            )
        except InconsistencyError:
            continue
        _copy_traces(node, new)
        node = new


def _copy_traces(old: Apply[Any], new: Apply[Any]) -> None:
    # Given several at once, each output gets the traces of all: n times as many with each join.
    for before, after in zip(old.outputs, new.outputs, strict=True):
        copy_stack_trace(before, after)


class _Writers:
    """Makes the nodes that write the streams of joins; equal kernels get one op."""

    def __init__(self, fgraph: FunctionGraph, reuse: bool) -> None:
        self._fgraph = fgraph
        self._reuse = reuse
        self._n_splits: Counter[tuple[WriteSplit, tuple[Variable[Any, Any], ...]]] = Counter()
        self._ops: dict[Any, WriteElemwise] = {}

    def changes(self, plan: JoinPlan) -> list[tuple[Variable[Any, Any], Variable[Any, Any]]]:
        """Return what to replace by what, so that kernels write the streams of a join."""
        joined = plan.node.outputs[0]
        dtype = joined.type.dtype
        written = tuple(stream.written for stream in plan.streams)
        memory, *parts = self._split(plan, written).outputs

        targets: dict[Apply[Any], list[tuple[Stream, Variable[Any, Any]]]] = {}
        for stream, part in zip([s for s in plan.streams if s.written], parts, strict=True):
            targets.setdefault(cast("Apply[Any]", stream.kernel), []).append((stream, part))
        kernels = {kernel: self._writing(kernel, streams) for kernel, streams in targets.items()}

        operands = [
            s.variable if s.kernel is None else kernels[s.kernel].outputs[s.output]
            for s in plan.streams
        ]
        join = WriteJoin(plan.axis, dtype, joined.type.shape, written).make_node(memory, *operands)
        changes = [(joined, join.outputs[0])]
        for kernel, new in kernels.items():
            done = {stream.output for stream, _ in targets[kernel]}
            changes += [
                (old, new.outputs[i]) for i, old in enumerate(kernel.outputs) if i not in done
            ]
            _copy_traces(kernel, new)
        copy_stack_trace(joined, join.outputs[0])
        return changes

    def _split(self, plan: JoinPlan, written: tuple[bool, ...]) -> Apply[Any]:
        joined = plan.node.outputs[0].type
        sources, shapes, total = _lengths(plan)
        slots = () if total is None else tuple(stream.slot for stream in plan.streams)
        first = WriteSplit(plan.axis, joined.ndim, joined.dtype, shapes, written, slots, total)
        # Merging two that allocate the same would make one of them.
        number = self._n_splits[first, sources]
        self._n_splits[first, sources] += 1
        outputs: dict[Apply[Any], set[int]] = {}
        for stream in plan.streams:
            if stream.kernel is not None:
                outputs.setdefault(stream.kernel, set()).add(stream.output)
        borrowed = tuple(
            not is_read_elsewhere(self._fgraph, stream.kernel, outputs[stream.kernel])
            for stream in plan.streams
            if stream.kernel is not None
        )
        kind = (plan.axis, joined.ndim, joined.dtype)
        split = WriteSplit(*kind, shapes, written, slots, total, number, self._reuse, borrowed)
        return split.make_node(*sources)

    def _writing(
        self, kernel: Apply[Any], streams: list[tuple[Stream, Variable[Any, Any]]]
    ) -> Apply[Any]:
        """Return the node that computes what ``kernel`` does, and writes streams over parts."""
        if isinstance(kernel.op, Alloc):
            [(_, part)] = streams
            number = cast("Any", kernel.inputs[0]).dimshuffle([])
            return WriteFill().make_node(number, part)
        if isinstance(kernel.op, Gemv):
            [(_, part)] = streams
            in_place: Any = type(kernel.op)(inplace=True)
            product: Apply[Any] = in_place.make_node(part, *kernel.inputs[1:])
            return product
        operands = list(kernel.inputs)
        for stream, part in streams:
            operands += [part] if stream.added is None else [stream.added, part]
        written = tuple(
            (stream.output, None if stream.added is None else stream.added.type.dtype)
            for stream, _ in streams
        )
        # All that `_writing_op` reads.
        key = (kernel.op, written, tuple(operand.type.dtype for operand in operands))
        if key not in self._ops:
            self._ops[key] = _writing_op(kernel, streams)
        node: Apply[Any] = cast("Any", self._ops[key]).make_node(*operands)
        return node


def _lengths(
    plan: JoinPlan,
) -> tuple[tuple[Variable[Any, Any], ...], tuple[tuple[Length, ...], ...], Length | None]:
    """Return the variables that lengths are read from, and the lengths that refer to them."""
    positions: dict[Variable[Any, Any], int] = {}

    def referring(source: Source) -> Length:
        variable, n = source
        return STATIC if variable is None else positions.setdefault(variable, len(positions)), n

    shapes = tuple(tuple(map(referring, stream.shape)) for stream in plan.streams)
    total = None if plan.total is None else referring(plan.total)
    return tuple(positions), shapes, total


def _writing_op(
    kernel: Apply[Any], streams: list[tuple[Stream, Variable[Any, Any]]]
) -> WriteElemwise:
    """Return the op of ``kernel`` with what streams are added to and written over as inputs."""
    scalar_op = kernel.op.scalar_op
    if isinstance(scalar_op, Composite):
        inner = cast("FrozenFunctionGraph", scalar_op.fgraph).unfreeze()
        inputs, outputs = list(inner.inputs), list(inner.outputs)
    else:
        inputs = [get_scalar_type(v.type.dtype).make_variable() for v in kernel.inputs]
        outputs = list(scalar_op.make_node(*inputs).outputs)
    pattern = dict(kernel.op.inplace_pattern)
    for stream, part in streams:
        computed = outputs[stream.output]
        if stream.added is not None:
            inputs.append(get_scalar_type(stream.added.type.dtype).make_variable())
            computed = cast("Any", scalar_add)(inputs[-1], computed)
        if computed.type.dtype != part.type.dtype:
            computed = scalar_cast(computed, part.type.dtype)
        outputs[stream.output] = computed
        pattern[stream.output] = len(inputs)
        inputs.append(get_scalar_type(part.type.dtype).make_variable())
    make: Any = WriteElemwise
    op: WriteElemwise = make(Composite(inputs, outputs), pattern, openmp=kernel.op.openmp)
    return op
