"""Which variables of a graph, and of the graphs in it, hold the same values.

Each variable gets a term in the hash-cons table, as freezing gives it, but about the values alone:

- copies, views, checks and a transpose of a transpose are what they copy, view, check, transpose;
- an op that overwrites an input computes what it would compute elsewhere;
- Elemwise nodes are read as scalar expressions, as in `_identity.value_numbering`, so that the
  boundaries of kernels do not count;
- memory that nothing has been written to is like no other;
- static shapes do not count, other than where Elemwise nodes broadcast;
- what goes into an inner graph as it is keeps its term there, and what comes out of the inner graph
  of an OpFromGraph has the term that it has inside.

One pass over all nodes: what has been found about one variable is shared by all that read it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import DeepCopyOp, TypeCastingOp
from pytensor.graph.basic import Constant
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
from pytensor_fuse._pytensor.in_place_ops import without_overwriting
from pytensor_fuse._pytensor.inner_graphs import passed_inside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.op import Op

    from pytensor_fuse._audit.context.graph import GraphContext
    from pytensor_fuse._core import Term

_PASS = (CheckAndRaise, DeepCopyOp, SpecifyShape, TypeCastingOp)


class Matrix(NamedTuple):
    """The values of a stack of matrices.

    Attributes
    ----------
    values
        Their term.
    transposed
        Whether it is the transposes that are held.
    """

    values: Term
    transposed: bool

    def flipped(self) -> Matrix:
        """Return the transposes of these."""
        return Matrix(self.values, not self.transposed)


@dataclass
class _TermFacts:
    """What is known about terms, whatever graph they are of."""

    transposes: dict[Term, Term] = field(default_factory=dict)
    matrices: dict[Term, Matrix] = field(default_factory=dict)
    constants: dict[Constant[Any], Term] = field(default_factory=dict)
    # By id: the graphs hold the ops.
    ops: dict[int, Term] = field(default_factory=dict)


class Values:
    """Terms of what the variables of a graph hold.

    Parameters
    ----------
    context
        The graph.
    given
        What inputs of the graph hold, as far as that is known from outside.
    varying
        Inputs that hold other values each time that the graph runs within one call.
    known
        What is known about terms.

    Attributes
    ----------
    context
        The graph.
    inner
        The same for the graphs in it, with the node that each is of.
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
        """Return the term of what ``variable`` holds."""
        if not isinstance(variable, Constant):
            return self._numbering.term(variable)
        known = self._known.constants.get(variable)
        if known is None:
            known = self._known.constants[variable] = constant_term(variable)
        return known

    def matrix(self, variable: Variable[Any, Any]) -> Matrix:
        """Return the matrices in the last two dimensions of ``variable``, transposes seen through.

        Leading dimensions of length 1 that were added or dropped are seen through, too.
        """
        value = self.of(variable)
        return self._known.matrices.get(value) or Matrix(value, False)

    def varies(self, node: Apply[Any]) -> bool:
        """Whether ``node`` may compute other values each time that its graph runs in one call."""
        return not self._varying.isdisjoint(node.inputs)

    def walk(self) -> Iterator[Values]:
        """Iterate over this graph and all that are in it, each before those in it."""
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
                # One number may stand in a kernel: the numbering itself knows how.
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
        """Say that ``output`` holds the matrices that ``read`` does, or their transposes."""
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
                # What somebody's op makes of a static shape is not known.
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
    """Whether the output holds what the first input does."""
    if isinstance(op, Elemwise):
        return isinstance(op.scalar_op, Identity)
    # PyMC has checks of its own that leave it to PyTensor to do them.
    return any(isinstance(op, class_) and type(op).perform is class_.perform for class_ in _PASS)


def is_of_known_class(op: Op) -> bool:
    """Whether the class of ``op`` is PyTensor's or ours, so that it is known what it does."""
    return type(op).__module__.startswith(("pytensor.", "pytensor_fuse."))
