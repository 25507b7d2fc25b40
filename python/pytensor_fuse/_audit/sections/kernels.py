"""The part of an audit about kernels: what each computes, reads and writes."""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import Composite, get_scalar_type
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise

from pytensor_fuse._audit.graph import op_name
from pytensor_fuse._identity.terms import intern_graph, term
from pytensor_fuse._plan import plan_fusion
from pytensor_fuse._pytensor.fused_elemwise import (
    index_inputs,
    indexed_outputs,
    indexes,
    is_fused_elemwise,
)
from pytensor_fuse._pytensor.targets import Target, max_operands
from pytensor_fuse._reports.tables import bounded, count, paragraphs, place, size, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._audit.graph import GraphContext
    from pytensor_fuse._core import Term


class KernelKind(enum.Enum):
    """What a kernel does besides computing element by element."""

    ELEMWISE = "Elemwise"
    INDEXED = "Elemwise that indexes or reduces"
    REDUCTION = "reduction of a fused expression"


@dataclass(frozen=True)
class KernelCost:
    """A kernel: one loop over elements.

    Attributes
    ----------
    name
        Its place in the order of the run, and its op.
    path
        The names of the nodes that it is inside of.
    kind
        What it is.
    scalar_ops
        Operations per element: their names, and how often each is there.
    reads
        The names of the arrays read, or of the nodes that compute them, seen through changes of
        their dimensions.
    arrays_read
        Distinct inputs, but for constants of one element.
    arrays_written
        Outputs, also those that overwrite an input.
    bytes_read, bytes_written
        Their sizes, each array counted once; None if one is not known. What an index picks from an
        array counts, not the array.
    operands
        Distinct inputs and outputs, which is what the limit is on.
    limited_by
        The kernels that only the limit keeps from being one with it.
    times
        How often it runs in a call of the function, if that is known.
    """

    name: str
    path: tuple[str, ...]
    kind: KernelKind
    scalar_ops: dict[str, int]
    reads: tuple[str, ...]
    arrays_read: int
    arrays_written: int
    bytes_read: int | None
    bytes_written: int | None
    operands: int
    limited_by: tuple[str, ...]
    times: int | None

    @property
    def scalar_nodes(self) -> int:
        """How many operations it does per element."""
        return sum(self.scalar_ops.values())

    @property
    def nbytes(self) -> int | None:
        """Bytes read and written together, if both are known."""
        if self.bytes_read is None or self.bytes_written is None:
            return None
        return self.bytes_read + self.bytes_written

    @property
    def bytes_per_call(self) -> int | None:
        """Those of all its runs in a call of the function, if that is known."""
        if self.nbytes is None or self.times is None:
            return None
        return self.nbytes * self.times

    def __str__(self) -> str:
        ops = [f"{name} x{n}" if n > 1 else name for name, n in self.scalar_ops.items()]
        text = (
            f"{place(self.path, self.name)}: "
            f"{count(self.scalar_nodes, 'scalar op')} ({_some(ops, 6)}), "
            f"{self.arrays_read} in ({_some(self.reads, 4)}), {self.arrays_written} out"
        )
        if self.nbytes is not None:
            text += f", {size(self.bytes_read)} read, {size(self.bytes_written)} written"
        if self.times not in (1, None):
            text += f", {self.times:,} times"
        return text


@dataclass(frozen=True)
class KernelsSection:
    """What the audit found about kernels.

    Attributes
    ----------
    kernels
        Those of the graph in the order of the run, then those of inner graphs.
    equal
        Groups of two or more kernels that are equal up to a renaming of their inputs: the same
        expression on operands of the same dtypes and broadcast patterns. Positions in ``kernels``.
        Which input a kernel overwrites does not matter. Those that compute the most together come
        first.
    max_operands
        The most operands that the target takes.
    after_fusion
        How many kernels the graph itself would have if it were fused (now), if fewer.
    """

    kernels: tuple[KernelCost, ...]
    equal: tuple[tuple[int, ...], ...]
    max_operands: int
    after_fusion: int | None

    @property
    def largest(self) -> KernelCost | None:
        """The kernel that moves the most bytes in a call, or of unknown ones computes the most."""
        return next(iter(self._by_size), None)

    @property
    def _by_size(self) -> list[KernelCost]:
        return sorted(self.kernels, key=_rank)

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        return {
            "kernels": [
                asdict(kernel)
                | {
                    "kind": kernel.kind.name,
                    "path": list(kernel.path),
                    "scalar_nodes": kernel.scalar_nodes,
                    "reads": list(kernel.reads),
                    "limited_by": list(kernel.limited_by),
                }
                for kernel in self.kernels
            ],
            "equal": [list(group) for group in self.equal],
            "max_operands": self.max_operands,
            "after_fusion": self.after_fusion,
        }

    def lines(self) -> list[str]:
        """Return the lines of the text."""
        kernels = self.kernels
        if not kernels:
            return ["no kernels"]
        lines = [self._summary()]
        if self.after_fusion is not None:
            lines.append(f"fused now, the graph would have {count(self.after_fusion, 'kernel')}")
        limited = [kernel for kernel in kernels if kernel.limited_by]
        lines += bounded(
            limited,
            lambda k: (
                f"limit of {self.max_operands} operands: {k.name} stays apart from "
                + ", ".join(k.limited_by[:3])
            ),
            "kernels at the limit",
        )
        lines += [f"largest: {line}" for line in bounded(self._by_size, str, "kernels", 5)]
        lines += bounded(
            self.equal,
            lambda group: (
                f"equal up to a renaming of inputs, {len(group)} times: {kernels[group[0]]}"
            ),
            "groups of equal kernels",
            5,
        )
        return lines

    def html(self) -> str:
        """Return the body of the section."""
        most = max((k.bytes_per_call or 0 for k in self.kernels), default=0)
        group_of = {i: number for number, group in enumerate(self.equal) for i in group}
        ranked = sorted(range(len(self.kernels)), key=lambda i: _rank(self.kernels[i]))
        rows = []
        for i in ranked:
            k = self.kernels[i]
            rows.append(
                (
                    place(k.path, k.name),
                    k.scalar_nodes,
                    _some([f"{op} x{n}" if n > 1 else op for op, n in k.scalar_ops.items()], 6),
                    _some(k.reads, 4),
                    k.arrays_read,
                    k.arrays_written,
                    size(k.bytes_read),
                    size(k.bytes_written),
                    "?" if k.times is None else f"{k.times:,}",
                    f"group {group_of[i] + 1}" if i in group_of else "",
                    ", ".join(k.limited_by[:3]),
                )
            )
        head = (
            *("kernel", "scalar ops", "which", "reads", "in", "out"),
            *("read", "written", "times", "equal", "limit"),
        )
        return paragraphs(self._notes()) + (
            table(
                head,
                rows,
                numbers=(1, 4, 5, 6, 7, 8),
                bars=[(self.kernels[i].bytes_per_call or 0) / (most or 1) for i in ranked],
            )
            if rows
            else ""
        )

    def _notes(self) -> list[str]:
        if not self.kernels:
            return ["no kernels"]
        notes = [self._summary()]
        if self.after_fusion is not None:
            notes.append(f"fused now, the graph would have {count(self.after_fusion, 'kernel')}")
        return notes

    def _summary(self) -> str:
        kernels = self.kernels
        inner = sum(bool(kernel.path) for kernel in kernels)
        known = [k.bytes_per_call for k in kernels if k.bytes_per_call is not None]
        scalar_nodes = sum(kernel.scalar_nodes for kernel in kernels)
        text = f"{count(len(kernels), 'kernel')} of {count(scalar_nodes, 'scalar op')}"
        if inner:
            text += f", {inner:,} of them in inner graphs"
        if known:
            text += f"; a call reads and writes {size(sum(known))}"
            if len(known) < len(kernels):
                text += f" in the {len(known):,} whose sizes are known"
        return text


def _rank(kernel: KernelCost) -> tuple[int, int]:
    return -(kernel.bytes_per_call or kernel.nbytes or 0), -kernel.scalar_nodes


def _some(names: Sequence[str], n: int) -> str:
    """Return the first of some names."""
    more = f", ... and {len(names) - n} more" if len(names) > n else ""
    return ", ".join(names[:n]) + more


def audit_kernels(context: GraphContext) -> KernelsSection:
    """Audit the kernels of a graph and its inner graphs; O(nodes + edges), but for the limit."""
    limit = max_operands(context.target)
    costs: list[KernelCost] = []
    groups: defaultdict[Any, list[int]] = defaultdict(list)
    expressions = _Expressions()
    for graph in _graphs(context):
        for node in graph.order:
            cost = _cost(graph, node)
            if cost is not None:
                if cost.kind is not KernelKind.REDUCTION:
                    groups[expressions.key(node)].append(len(costs))
                costs.append(cost)
        limited = _kept_apart(graph, limit)
        if limited:
            costs = [
                replace(cost, limited_by=limited.get(cost.name, ()))
                if cost.path == graph.path
                else cost
                for cost in costs
            ]
    return KernelsSection(
        tuple(costs),
        tuple(
            sorted(
                (tuple(group) for group in groups.values() if len(group) > 1),
                key=lambda group: -len(group) * costs[group[0]].scalar_nodes,
            )
        ),
        limit,
        _after_fusion(context),
    )


def _graphs(context: GraphContext) -> Iterable[GraphContext]:
    """Iterate over the graphs whose nodes run one by one: not over those that are one loop."""
    yield context
    for node, inner in context.inner:
        if not is_fused_elemwise(node.op):
            yield from _graphs(inner)


def _cost(graph: GraphContext, node: Apply[Any]) -> KernelCost | None:
    op = node.op
    if isinstance(op, Elemwise):
        kind, scalar_op = KernelKind.ELEMWISE, op.scalar_op
    elif is_fused_elemwise(op):
        scalar_op = _elemwise_inside(op.fgraph.toposort()).op.scalar_op
        kind = KernelKind.INDEXED if indexes(op) else KernelKind.ELEMWISE
    elif isinstance(op, CAReduce) and isinstance(op.scalar_op, Composite):
        kind, scalar_op = KernelKind.REDUCTION, op.scalar_op
    else:
        return None
    arrays = [v for v in dict.fromkeys(node.inputs) if not _is_number(v)]
    if is_fused_elemwise(op):
        bytes_read, bytes_written = _bytes_touched(graph, node)
    else:
        bytes_read = _sum(graph.nbytes(v) for v in arrays)
        bytes_written = _sum(graph.nbytes(v) for v in node.outputs)
    return KernelCost(
        name=graph.name(node),
        path=graph.path,
        kind=kind,
        scalar_ops=dict(sorted(_scalar_ops(scalar_op).items())),
        reads=tuple(dict.fromkeys(graph.variable_name(_unshuffled(v)) for v in arrays)),
        arrays_read=len(arrays),
        arrays_written=len(node.outputs),
        bytes_read=bytes_read,
        bytes_written=bytes_written,
        operands=len(set(node.inputs)) + len(node.outputs),
        limited_by=(),
        times=graph.times,
    )


def _unshuffled(variable: Variable[Any, Any]) -> Variable[Any, Any]:
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        variable = variable.owner.inputs[0]
    return variable


def _is_number(variable: Variable[Any, Any]) -> bool:
    return isinstance(variable, Constant) and variable.data.size == 1


def _sum(sizes: Iterable[int | None]) -> int | None:
    total = 0
    for n in sizes:
        if n is None:
            return None
        total += n
    return total


def _scalar_ops(scalar_op: Any) -> Counter[str]:
    """Count the scalar ops of a kernel, those of nested ones among them."""
    if not isinstance(scalar_op, Composite):
        return Counter([op_name(scalar_op).lower()])
    ops: Counter[str] = Counter()
    for node in scalar_op.fgraph.apply_nodes:
        ops += _scalar_ops(node.op)
    return ops


def _elemwise_inside(nodes: Sequence[Apply[Any]]) -> Apply[Any]:
    """Return the Elemwise that an op which wraps one is made of."""
    return next(node for node in nodes if isinstance(node.op, Elemwise))


def _bytes_touched(graph: GraphContext, node: Apply[Any]) -> tuple[int | None, int | None]:
    """Return what a loop reads and writes that may index its inputs and outputs.

    Of what it indexes, it reads what it picks, and the indices; where it assigns, it writes what it
    computes, and where it adds to what is there, it reads as much.
    """
    inner = graph.inner_graph[node]
    elemwise = _elemwise_inside(inner.order)
    picked = [v for v in dict.fromkeys(elemwise.inputs) if not _is_number(v)]
    indices = dict.fromkeys(index_inputs(node))
    read = [inner.nbytes(v) for v in picked] + [graph.nbytes(v) for v in indices]
    written = []
    modes = indexed_outputs(node.op)
    for i, variable in enumerate(node.outputs):
        mode = modes.get(i)
        assigned = inner.nbytes(elemwise.outputs[i]) if mode is not None else None
        if mode == "inc":
            read.append(assigned)
        in_place = i in node.op.destroy_map
        written.append(assigned if mode is not None and in_place else graph.nbytes(variable))
    return _sum(read), _sum(written)


# Equal kernels


class _Expressions:
    """Keys of what kernels compute; equal kernels have equal keys."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Term, tuple[int, ...]]] = {}

    def key(self, node: Apply[Any]) -> Any:
        """Return the key of a kernel.

        Inputs are numbered as the expression comes to them, outputs first to last and operands left
        to right, whatever their order was. So kernels have the same key exactly if one becomes the
        other by permuting its inputs.
        """
        patterns = [(v.type.dtype, getattr(v.type, "broadcastable", "number")) for v in node.inputs]
        dtypes = tuple([dtype for dtype, _ in patterns])
        expression = node.op.scalar_op if isinstance(node.op, Elemwise) else node.op
        found = (term(expression), dtypes)
        if found not in self._known:
            self._known[found] = _canonical(expression, dtypes)
        root, order = self._known[found]
        return root, tuple([patterns[i] for i in order])


def _canonical(expression: Any, dtypes: Sequence[str]) -> tuple[Term, tuple[int, ...]]:
    """Return the term of an expression with its inputs in order of appearance, and that order."""
    if hasattr(expression, "fgraph"):
        inputs: Sequence[Any] = expression.fgraph.inputs
        outputs: Sequence[Any] = expression.fgraph.outputs
    else:
        inputs = [get_scalar_type(dtype).make_variable() for dtype in dtypes]
        outputs = expression.make_node(*inputs).outputs
    order = _order_of_appearance(inputs, outputs)
    return intern_graph([inputs[i] for i in order], outputs).root, order


def _order_of_appearance(inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[int, ...]:
    numbers = {variable: i for i, variable in enumerate(inputs)}
    order: dict[int, None] = {}
    seen: set[Any] = set()
    stack = list(reversed(outputs))
    while stack:
        variable = stack.pop()
        if variable in numbers:
            order[numbers[variable]] = None
        elif variable.owner is not None and variable.owner not in seen:
            seen.add(variable.owner)
            stack += reversed(variable.owner.inputs)
    # Those that are not read are alike but for their types.
    unused = [i for i in range(len(inputs)) if i not in order]
    return (*order, *sorted(unused, key=lambda i: inputs[i].type.dtype))


# Limits


def _kept_apart(graph: GraphContext, limit: int) -> dict[str, tuple[str, ...]]:
    """Return for each kernel at the limit those that it would be one with, but for the limit.

    Of two kernels with too many operands together, one has more than half of what is too many, so
    only such are looked at.
    """
    big = [
        node
        for node in graph.order
        if isinstance(node.op, Elemwise) and 2 * _n_operands([node], graph) > limit
    ]
    if not big:
        return {}
    kept: defaultdict[Apply[Any], dict[Apply[Any], None]] = defaultdict(dict)
    for node in big:
        for other in _neighbours(graph, node):
            if other in kept[node] or _n_operands([node, other], graph) <= limit:
                continue
            pair = [graph.positions[node], graph.positions[other]]
            # Together they would be a cycle with what is between them.
            if graph.dependencies.is_convex(pair):
                kept[node][other] = None
                kept[other][node] = None
    return {
        graph.name(node): tuple(
            graph.name(other) for other in sorted(others, key=graph.positions.__getitem__)
        )
        for node, others in kept.items()
    }


def _neighbours(graph: GraphContext, node: Apply[Any]) -> list[Apply[Any]]:
    """Return the kernels of the same pattern that one is connected to, as fusion takes it."""
    pattern = node.outputs[0].type.broadcastable
    near: dict[Apply[Any], None] = {}
    for variable in node.inputs:
        if variable.type.broadcastable != pattern:
            continue
        if variable.owner is not None:
            near[variable.owner] = None
        near.update((client, None) for client, _ in graph.clients.get(variable, ()))
    for variable in node.outputs:
        near.update((client, None) for client, _ in graph.clients.get(variable, ()))
    near.pop(node, None)
    return [
        other
        for other in near
        if isinstance(other.op, Elemwise) and other.outputs[0].type.broadcastable == pattern
    ]


def _n_operands(nodes: Sequence[Apply[Any]], graph: GraphContext) -> int:
    """Return how many operands one kernel of these nodes has."""
    results = [v for node in nodes for v in node.outputs]
    outputs = set(graph.fgraph.outputs)
    leaving = [
        v
        for v in results
        if v in outputs
        or v not in graph.clients
        or any(client not in nodes for client, _ in graph.clients[v])
    ]
    entering = {v for node in nodes for v in node.inputs} - set(results)
    return len(entering) + len(leaving)


def _after_fusion(context: GraphContext) -> int | None:
    if not isinstance(context.fgraph, FunctionGraph):
        return None
    target = None if context.target is Target.STRICT else context.target.value
    stats = plan_fusion(context.fgraph, target=target).stats
    return stats.kernels_after if stats.kernels_after < stats.kernels_before else None
