"""Value numbering of a graph and its inner graphs: terms for equal values of variables.

Each variable gets a term in the hash-cons table, as in freezing, but only its values count:

- copies, views, checks and a transpose of a transpose have the term of their operand;
- an op in place has the term of the same op out of place;
- Elemwise nodes are scalar expressions, as in `_identity.value_numbering`, so that the boundaries
  of kernels do not count;
- uninitialized memory is equal to nothing else;
- static shapes do not count, except where Elemwise nodes broadcast;
- an input that is passed to an inner graph unchanged keeps its term there, and an output of an
  OpFromGraph has its term inside the inner graph.

All nodes are numbered in one pass, whose facts about a variable are shared by all its readers.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import DeepCopyOp, TypeCastingOp
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.basic import Identity
from pytensor.tensor.basic import AllocEmpty
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorConstant

from pytensor_fuse._identity.table import table
from pytensor_fuse._identity.terms import constant_term
from pytensor_fuse._identity.terms import term as term_of
from pytensor_fuse._identity.value_numbering import Numbering
from pytensor_fuse._pytensor.graphs.in_place_ops import without_overwriting
from pytensor_fuse._pytensor.graphs.inner_graphs import passed_inside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytensor.graph.op import Op

    from pytensor_fuse._audit.context.graph import GraphContext
    from pytensor_fuse._core import Term

_PASS = (CheckAndRaise, DeepCopyOp, SpecifyShape, TypeCastingOp)


class Matrix(NamedTuple):
    """The values of a stack of matrices.

    Attributes
    ----------
    values
        The term of the values.
    transposed
        Whether the matrices are the transposes of these values.
    """

    values: Term
    transposed: bool

    def flipped(self) -> Matrix:
        """Return the transposes of these."""
        return Matrix(self.values, not self.transposed)


@dataclass
class _TermFacts:
    """Facts about terms, which are common to all graphs."""

    transposes: dict[Term, Term] = field(default_factory=dict)
    matrices: dict[Term, Matrix] = field(default_factory=dict)
    constants: dict[Constant[Any], Term] = field(default_factory=dict)
    # By id, since the graphs keep the ops alive.
    ops: dict[int, Term] = field(default_factory=dict)


class Values:
    """Terms of the values of a graph's variables.

    Parameters
    ----------
    context
        The graph.
    given
        Terms of the graph's inputs, where they are known from outside.
    varying
        Inputs whose values change between the runs of the graph within one call.
    known
        Facts about terms.

    Attributes
    ----------
    context
        The graph.
    inner
        The terms of the inner graphs, each with its node.
    """

    def __init__(
        self,
        context: GraphContext,
        *,
        given: dict[Variable[Any, Any], Term] | None = None,
        varying: Iterable[Variable[Any, Any]] = (),
        known: _TermFacts | None = None,
    ) -> None:
        self.context = context
        self.inner: list[tuple[Apply[Any], Values]] = []
        self._numbering = Numbering()
        self._varying = set(varying)
        self._known = known or _TermFacts()
        for variable, value in (given or {}).items():
            self._numbering.give(variable, value)
        graphs = defaultdict(list)
        for node, graph in context.inner:
            graphs[node].append(graph)
        for node in context.order:
            if not self._varying.isdisjoint(node.inputs):
                self._varying.update(node.outputs)
            inner = [self._enter(node, graph) for graph in graphs.get(node, ())]
            self.inner += [(node, values) for values in inner]
            self._number(node, inner)

    def of(self, variable: Variable[Any, Any]) -> Term:
        """Return the term of the values of ``variable``."""
        if not isinstance(variable, Constant):
            return self._numbering.term(variable)
        known = self._known.constants.get(variable)
        if known is None:
            known = self._known.constants[variable] = constant_term(variable)
        return known

    def matrix(self, variable: Variable[Any, Any]) -> Matrix:
        """Return the matrices in the last two dimensions of ``variable``.

        Transposes, and added or dropped leading dimensions of length 1, are seen through.
        """
        value = self.of(variable)
        return self._known.matrices.get(value) or Matrix(value, False)

    def varies(self, node: Apply[Any]) -> bool:
        """Return whether the result of ``node`` may change between its runs in one call."""
        return not self._varying.isdisjoint(node.inputs)

    def walk(self) -> Iterator[Values]:
        """Iterate over this graph and all inner graphs, in preorder."""
        yield self
        for _, inner in self.inner:
            yield from inner.walk()

    def _enter(self, node: Apply[Any], graph: GraphContext) -> Values:
        passed = passed_inside(node, graph.fgraph)
        given = {inside: self.of(outside) for inside, outside in passed.items()}
        inputs = graph.fgraph.inputs
        varying = [v for v in inputs if v not in passed or passed[v] in self._varying]
        return Values(graph, given=given, varying=varying, known=self._known)

    def _number(self, node: Apply[Any], inner: list[Values]) -> None:
        op = node.op
        if passes(op):
            self._numbering.give(node.outputs[0], self.of(node.inputs[0]))
        elif isinstance(op, Elemwise):
            for variable in node.inputs:
                # Constants of one element may be inlined in kernels: the numbering handles them.
                if isinstance(variable, TensorConstant) and variable.data.size != 1:
                    self._numbering.give(variable, self.of(variable))
            self._numbering.number(node)
        elif isinstance(op, DimShuffle):
            self._number_dim_shuffle(node, op)
        elif isinstance(op, OpFromGraph) and len(inner) == 1:
            [inside] = inner
            results = inside.context.fgraph.outputs
            for output, result in zip(node.outputs, results, strict=True):
                self._numbering.give(output, inside.of(result))
        elif not isinstance(op, AllocEmpty):
            self._number_apply(node)

    def _number_dim_shuffle(self, node: Apply[Any], op: DimShuffle) -> None:
        [read], [output] = node.inputs, node.outputs
        ndim, order = read.type.ndim, list(op.new_order)
        in_place = list(range(ndim))
        value = self.of(read)
        if ndim >= 2 and order == [*in_place[:-2], ndim - 1, ndim - 2]:
            transposes = self._known.transposes
            if value not in transposes:
                transposes[value] = table.compound(b"transposed", [value])
                transposes[transposes[value]] = value
            self._numbering.give(output, transposes[value])
            self._hold(output, read, transposed=True)
            return
        self._number_apply(node)
        core = list(dropwhile(lambda axis: axis == "x", order))
        if "x" not in core and len(core) >= 2:
            kept = in_place[ndim - len(core) :]
            if core == kept:
                self._hold(output, read, transposed=False)
            elif core == [*kept[:-2], kept[-1], kept[-2]]:
                self._hold(output, read, transposed=True)

    def _hold(
        self, output: Variable[Any, Any], read: Variable[Any, Any], *, transposed: bool
    ) -> None:
        """Note that ``output`` holds the same matrices as ``read``, or their transposes."""
        values, is_transposed = self.matrix(read)
        self._known.matrices[self.of(output)] = Matrix(values, is_transposed != transposed)

    def _number_apply(self, node: Apply[Any]) -> None:
        content = bytearray(b"values ")
        children = [self._of_op(node)]
        is_known = is_of_known_class(node.op)
        for variable in (*node.inputs, *node.outputs):
            type_ = variable.type
            if type(type_) is TensorType and is_known:
                content += b"%b%d " % (type_.dtype.encode(), type_.ndim)
            else:
                # A third-party op may depend on static shapes.
                content += b"T"
                children.append(term_of(type_))
        children += [self.of(variable) for variable in node.inputs]
        made = table.compound(bytes(content), children)
        for i, output in enumerate(node.outputs):
            self._numbering.give(output, table.compound(b"output %d" % i, [made]))

    def _of_op(self, node: Apply[Any]) -> Term:
        op = node.op
        if isinstance(op, Blockwise) and op.batch_ndim(node) == 0:
            op = op.core_op
        known = self._known.ops.get(id(op))
        if known is None:
            known = self._known.ops[id(op)] = term_of(without_overwriting(op))
        return known


def passes(op: Op) -> bool:
    """Return whether the output has the same values as the first input."""
    if isinstance(op, Elemwise):
        return isinstance(op.scalar_op, Identity)
    # PyMC has subclasses of checks that inherit PyTensor's implementation.
    return any(isinstance(op, class_) and type(op).perform is class_.perform for class_ in _PASS)


def is_of_known_class(op: Op) -> bool:
    """Return whether the class of ``op`` is PyTensor's or ours, so that its behavior is known."""
    return type(op).__module__.startswith(("pytensor.", "pytensor_fuse."))
