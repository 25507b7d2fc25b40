"""The part of an audit about what a graph is made of, and what of that it does not know."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytensor.compile.ops import FromFunctionOp
from pytensor.scalar.basic import BinaryScalarOp, Composite, ScalarOp, UnaryScalarOp
from pytensor.tensor.basic import ScalarFromTensor, TensorFromScalar
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, Elemwise
from pytensor.tensor.type import TensorType

from pytensor_fuse._pytensor.fused_elemwise import is_fused_elemwise
from pytensor_fuse._reports.tables import bounded, count, paragraphs, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op

    from pytensor_fuse._audit.graph import GraphContext


class OpKind(enum.Enum):
    """What an op is for."""

    KERNEL = "kernel"
    REDUCTION = "reduction"
    MATRIX = "matrix product, solver or decomposition"
    INDEXING = "indexing or assignment"
    MAKING = "making or joining arrays"
    SHAPE = "shape or other view"
    RANDOM = "random numbers"
    SPARSE = "sparse"
    INNER_GRAPH = "with an inner graph"
    WRITING = "kernels writing into a join"
    SCALAR = "numbers outside of arrays"
    OTHER = "other of PyTensor"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class UnknownOp:
    """An op that is neither of PyTensor nor of this package.

    Where its results are, and what it overwrites, the audit has from what the op declares. What it
    computes, and at which cost, is not known.

    Attributes
    ----------
    name
        The class of the op, with its module. A scalar op is one that kernels compute with.
    nodes
        How many nodes apply it.
    first
        The names of the first of them and of the nodes that it is inside of, outermost first.
    sizes_known
        Whether the sizes of the results of all of them are known.
    """

    name: str
    nodes: int
    first: tuple[str, ...]
    sizes_known: bool

    def __str__(self) -> str:
        text = (
            f"unknown op {self.name}, {count(self.nodes, 'node')}, first {' > '.join(self.first)}"
        )
        return text if self.sizes_known else f"{text}; the sizes of its results are not known"


@dataclass(frozen=True)
class OpsSection:
    """What a graph is made of.

    Attributes
    ----------
    nodes
        Apply nodes, those of inner graphs among them, but for those that a kernel wraps: it is one.
    inner_nodes
        Those of inner graphs.
    kinds
        How many nodes are of which kind, the most first. Each node is of one kind.
    unknown
        The ops that the audit does not know, the most frequent first.
    """

    nodes: int
    inner_nodes: int
    kinds: dict[OpKind, int]
    unknown: tuple[UnknownOp, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        return {
            "nodes": self.nodes,
            "inner_nodes": self.inner_nodes,
            "kinds": {kind.name.lower(): n for kind, n in self.kinds.items()},
            "unknown": [{**asdict(op), "first": list(op.first)} for op in self.unknown],
        }

    def lines(self) -> list[str]:
        """Return the lines of the text."""
        kinds = ", ".join(f"{n:,} {kind.value}" for kind, n in self.kinds.items())
        inner = f", {self.inner_nodes:,} of them in inner graphs" if self.inner_nodes else ""
        summary = f"{count(self.nodes, 'node')}{inner}" + (f": {kinds}" if kinds else "")
        return [*bounded(self.unknown, str, "unknown ops"), summary]

    def html(self) -> str:
        """Return the body of the section."""
        most = max(self.kinds.values(), default=1)
        text = paragraphs(self.lines()[:-1])
        if self.kinds:
            text += table(
                ("kind", "nodes"),
                [(kind.value, f"{n:,}") for kind, n in self.kinds.items()],
                numbers=(1,),
                bars=[n / most for n in self.kinds.values()],
            )
        return text


def audit_ops(context: GraphContext) -> OpsSection:
    """Count the nodes of a graph and its inner graphs by kind; O(nodes)."""
    kinds: Counter[OpKind] = Counter()
    unknown: dict[str, tuple[int, tuple[str, ...], bool]] = {}
    scalars = _UnknownScalars()
    total = 0
    for graph, in_kernel in _walk(context):
        for node in graph.order:
            kind = kind_of(node.op)
            if not in_kernel:
                total += 1
                kinds[kind] += 1
            names = scalars.of(node.op)
            if kind is OpKind.UNKNOWN:
                names = (_class_name(node.op),)
            for name in names:
                n, first, sizes_known = unknown.get(name, (0, (), True))
                first = first or (*graph.path, graph.name(node))
                unknown[name] = (n + 1, first, sizes_known and _sizes_are_known(graph, node))
    ops = [UnknownOp(name, *found) for name, found in unknown.items()]
    return OpsSection(
        nodes=total,
        inner_nodes=total - len(context.order),
        kinds=dict(sorted(kinds.items(), key=lambda item: -item[1])),
        unknown=tuple(sorted(ops, key=lambda op: -op.nodes)),
    )


def _walk(graph: GraphContext, *, in_kernel: bool = False) -> Iterator[tuple[GraphContext, bool]]:
    """Iterate over a graph and those in it, and whether a kernel wraps them."""
    yield graph, in_kernel
    for node, inner in graph.inner:
        yield from _walk(inner, in_kernel=in_kernel or is_fused_elemwise(node.op))


# By the module that defines an op, the first that fits.
_MODULES = (
    ("pytensor_fuse.", OpKind.WRITING),
    ("pytensor.scan.", OpKind.INNER_GRAPH),
    ("pytensor.ifelse", OpKind.INNER_GRAPH),
    ("pytensor.conditional.", OpKind.INNER_GRAPH),
    ("pytensor.compile.builders", OpKind.INNER_GRAPH),
    ("pytensor.scalar.", OpKind.SCALAR),
    ("pytensor.sparse.", OpKind.SPARSE),
    ("pytensor.tensor.random.", OpKind.RANDOM),
    *(
        (f"pytensor.tensor.{name}", OpKind.MATRIX)
        for name in ("linalg", "blas", "slinalg", "nlinalg", "_linalg")
    ),
    ("pytensor.tensor.subtensor", OpKind.INDEXING),
    ("pytensor.tensor.basic", OpKind.MAKING),
    ("pytensor.tensor.shape", OpKind.SHAPE),
    ("pytensor.tensor.reshape", OpKind.SHAPE),
    ("pytensor.", OpKind.OTHER),
)

_SCALAR_BASES = (UnaryScalarOp, BinaryScalarOp)

# What an op of somebody else is derived from says nothing about it.
_BASES = ("pytensor.graph.", "pytensor.link.")


def kind_of(op: Op) -> OpKind:
    """Return what an op is for; the kind of one that is mapped over batches is its own."""
    if isinstance(op, Blockwise):
        return kind_of(op.core_op)
    if isinstance(op, Elemwise) or is_fused_elemwise(op):
        return OpKind.KERNEL
    if isinstance(op, CAReduce):
        return OpKind.REDUCTION
    if isinstance(op, FromFunctionOp):
        return OpKind.UNKNOWN
    if isinstance(op, ScalarFromTensor | TensorFromScalar):
        return OpKind.SCALAR
    if type(op).__name__ == "Dot":
        return OpKind.MATRIX
    for base in type(op).__mro__:
        if base.__module__.startswith(_BASES):
            return OpKind.UNKNOWN
        for prefix, kind in _MODULES:
            if f"{base.__module__}.".startswith(prefix):
                of_views = kind in (OpKind.OTHER, OpKind.MAKING) and bool(op.view_map)
                return OpKind.SHAPE if of_views else kind
    return OpKind.UNKNOWN


class _UnknownScalars:
    """The scalar ops inside of kernels and reductions that are neither PyTensor's nor ours."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, tuple[str, ...]]] = {}

    def of(self, op: Any) -> tuple[str, ...]:
        """Return the names of those in an op."""
        scalar_op = getattr(op, "scalar_op", None)
        if not isinstance(scalar_op, ScalarOp):
            return ()
        number = id(scalar_op)
        if number not in self._known:
            self._known[number] = scalar_op, tuple(dict.fromkeys(_unknown_scalars(scalar_op)))
        return self._known[number][1]


def _unknown_scalars(scalar_op: Any) -> Iterator[str]:
    if isinstance(scalar_op, Composite):
        for node in scalar_op.fgraph.apply_nodes:
            yield from _unknown_scalars(node.op)
    elif not any(
        f"{base.__module__}.".startswith("pytensor.")
        for base in type(scalar_op).__mro__
        if base not in ScalarOp.__mro__ and base not in _SCALAR_BASES
    ):
        yield f"{_class_name(scalar_op)} (scalar)"


def _class_name(op: Any) -> str:
    if isinstance(op, Blockwise):
        return f"Blockwise of {_class_name(op.core_op)}"
    if isinstance(op, FromFunctionOp):
        return str(op)
    return f"{type(op).__module__}.{type(op).__qualname__}"


def _sizes_are_known(graph: GraphContext, node: Apply[Any]) -> bool:
    return all(graph.nbytes(v) is not None for v in node.outputs if isinstance(v.type, TensorType))
