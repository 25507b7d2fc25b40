"""Value numbering across kernels, which finds equal outputs of different kernels.

Merging compares apply nodes. Once an expression is fused with others, its node is the kernel, and
two kernels that both compute it among other results are different nodes. Here, every Elemwise node
is expanded to the scalar expressions that it evaluates for each element, down to variables that no
Elemwise node computes, and the expressions are interned: two outputs have the same values if their
terms are the same, wherever the boundaries of kernels are.

An Elemwise node broadcasts all of its inputs together, including those that an output does not
depend on. The shape of an output follows from its own expression if, on each axis whose static
length in the output is not 1, the expression reads at least one variable whose static length is not
1, either: PyTensor refuses inputs that would have to be broadcast at run time. If the shape does
not follow, all inputs of the node are part of the term.

This is the value numbering of B. Alpern, M. N. Wegman and F. K. Zadeck, "Detecting equality of
variables in programs", POPL 1988, on an acyclic graph; linear in the number of scalar nodes.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Constant
from pytensor.scalar.basic import Composite, get_scalar_type
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorConstant

from pytensor_fuse import _core
from pytensor_fuse._identity.table import table
from pytensor_fuse._identity.terms import constant_term, term

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor.graph.basic import Apply, Variable

_ALL_AXES = (1 << 64) - 1


def equal_outputs(
    nodes: Iterable[Apply[Any]],
) -> list[tuple[Variable[Any, Any], Variable[Any, Any]]]:
    """Find outputs of Elemwise nodes that have the same values as earlier ones.

    Parameters
    ----------
    nodes
        Nodes in topological order. Those that overwrite an input are skipped.

    Returns
    -------
    list of tuple
        Pairs of an output and the first output with the same values. The type of the first is at
        least as specific. The node of the first comes no later, so replacing the outputs of all
        pairs makes no cycle.
    """
    numbering = Numbering()
    first: dict[_core.Term, Variable[Any, Any]] = {}
    pairs = []
    for node in nodes:
        if not isinstance(node.op, Elemwise) or node.op.destroy_map:
            continue
        for output in numbering.number(node):
            known = first.setdefault(numbering.term(output), output)
            if known is not output and output.type.is_super(known.type):
                pairs.append((output, known))
    return pairs


class Numbering:
    """Terms of the values of variables."""

    def __init__(self) -> None:
        # The term of each variable, and the axes on which it has static length 1.
        self._known: dict[Variable[Any, Any], tuple[_core.Term, int]] = {}

    def term(self, variable: Variable[Any, Any]) -> _core.Term:
        """Return the term of ``variable``, which is a leaf unless it has been numbered."""
        return self._of(variable)[0]

    def give(self, variable: Variable[Any, Any], value: _core.Term) -> None:
        """Set the term of ``variable``."""
        self._known[variable] = value, _broadcast_axes(variable)

    def _of(self, variable: Variable[Any, Any]) -> tuple[_core.Term, int]:
        known = self._known.get(variable)
        if known is None:
            known = self._known[variable] = _leaf(variable), _broadcast_axes(variable)
        return known

    def number(self, node: Apply[Any]) -> Sequence[Variable[Any, Any]]:
        """Set the terms of the outputs of an Elemwise node, and return the outputs."""
        known = [self._of(variable) for variable in node.inputs]
        inputs, masks = [value for value, _ in known], [mask for _, mask in known]
        for output, (value, mask) in zip(
            node.outputs, _scalar_graph(node).evaluate(inputs, masks), strict=True
        ):
            axes = _broadcast_axes(output)
            if mask != axes:
                shapes = sorted(set(inputs), key=lambda shape: shape.id)
                value = table.compound(b"broadcast with", [value, *shapes])
            self._known[output] = value, axes
        return node.outputs


# By id of the Composite; an entry is removed when the Composite is collected.
_scalar_graphs: dict[int, tuple[weakref.ref[Composite], _ScalarGraph]] = {}


def _scalar_graph(node: Apply[Any]) -> _ScalarGraph:
    composite = node.op.scalar_op
    if not isinstance(composite, Composite):
        return _ScalarGraph.of_node(node)
    number = id(composite)
    known = _scalar_graphs.get(number)
    if known is not None and known[0]() is composite:
        return known[1]
    graph = _ScalarGraph.of_composite(composite)
    gone = weakref.ref(composite, lambda _: _scalar_graphs.pop(number, None))
    _scalar_graphs[number] = gone, graph
    return graph


class _ScalarGraph:
    """The scalar graph that an Elemwise node evaluates for each element, over any leaf terms."""

    def __init__(
        self,
        flat: _core.FlatGraph,
        ops: Sequence[_core.Term],
        types: Sequence[_core.Term],
        constants: Sequence[_core.Term],
    ) -> None:
        self._flat = flat
        self._ops = ops
        self._types = types
        self._constants = constants

    @classmethod
    def of_composite(cls, composite: Composite) -> _ScalarGraph:
        fgraph = composite.fgraph
        flat, ops, types, constants, orphans = _core.walk(
            fgraph.inputs, fgraph.outputs, Constant, TensorType
        )
        assert not orphans, "a Composite is frozen, which checks this"
        return cls(
            flat,
            [term(op) for op in ops],
            [term(type_) for type_ in types],
            [constant_term(constant) for constant in constants],
        )

    @classmethod
    def of_node(cls, node: Apply[Any]) -> _ScalarGraph:
        n_inputs, n_outputs = len(node.inputs), len(node.outputs)
        flat = _core.FlatGraph(
            # The types of inputs are part of their terms.
            [0] * n_inputs,
            0,
            [(0, range(n_inputs), range(n_outputs))],
            range(n_inputs, n_inputs + n_outputs),
        )
        types = [term(get_scalar_type(output.type.dtype)) for output in node.outputs]
        return cls(flat, [term(node.op.scalar_op)], types, [])

    def evaluate(
        self, inputs: Sequence[_core.Term], masks: Sequence[int]
    ) -> list[tuple[_core.Term, int]]:
        """Return the term of each output, and the axes on which all its leaves have length 1."""
        leaves = [*inputs, *self._constants]
        masks = [*masks, *[_ALL_AXES] * len(self._constants)]
        return self._flat.substitute(table, leaves, masks, self._ops, self._types)


def _leaf(variable: Variable[Any, Any]) -> _core.Term:
    """Return the term of a variable without a known expression."""
    if isinstance(variable, TensorConstant) and all(one == 1 for one in variable.type.shape):
        # The same constant may be inside the scalar graph of a kernel.
        scalar = get_scalar_type(variable.type.dtype)
        return constant_term(scalar.make_constant(variable.data.reshape(())))
    return table.opaque()


def _broadcast_axes(variable: Variable[Any, Any]) -> int:
    """Return the axes of static length 1 as bits; those beyond the last axis are set.

    A variable that is not a tensor has no axes.
    """
    mask = _ALL_AXES
    for axis, length in enumerate(getattr(variable.type, "shape", ())):
        if length != 1:
            mask &= ~(1 << axis)
    return mask
