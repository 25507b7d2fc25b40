"""Outputs of different kernels that are the same values.

Merging compares apply nodes. Once an expression is inside a kernel with others, its node is the
kernel, and two kernels that both compute it beside other things are different nodes. Here every
Elemwise node is read as the scalar expressions that it evaluates for each element, down to
variables that no Elemwise node computes, and the expressions are interned: two outputs are the same
values if their terms are the same, wherever the boundaries of kernels are.

An Elemwise node broadcasts its inputs together, also those that an output does not depend on. The
shape of an output follows from its own expression if along each axis on which the output is not of
static length 1, neither is one of the variables that the expression reads: PyTensor refuses inputs
that would have to be broadcast at run time. Where it does not follow, all inputs of the node are
part of the term.

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
    """Find the outputs of Elemwise nodes that are the same values as others.

    Parameters
    ----------
    nodes
        In topological order. Those that overwrite an input are left out.

    Returns
    -------
    list of tuple
        Pairs of an output and the first one that is the same values. The type of the first is at
        least as specific. The node of the first comes no later, so that reading it in the place of
        the other, for all of the pairs, makes no cycle.
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
        # With the axes on which a variable has static length 1.
        self._known: dict[Variable[Any, Any], tuple[_core.Term, int]] = {}

    def term(self, variable: Variable[Any, Any]) -> _core.Term:
        """Return the term of ``variable``; nothing is known of it if it was not numbered."""
        return self._of(variable)[0]

    def give(self, variable: Variable[Any, Any], value: _core.Term) -> None:
        """Say what is known of the values of ``variable``."""
        self._known[variable] = value, _broadcast_axes(variable)

    def _of(self, variable: Variable[Any, Any]) -> tuple[_core.Term, int]:
        known = self._known.get(variable)
        if known is None:
            known = self._known[variable] = _leaf(variable), _broadcast_axes(variable)
        return known

    def number(self, node: Apply[Any]) -> Sequence[Variable[Any, Any]]:
        """Give the outputs of an Elemwise node their terms, and return them."""
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


# By id of the Composite; an entry goes when that does.
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
    """What an Elemwise node evaluates for each element, to be put on top of any terms."""

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
        """Return the term of each output, and the axes on which its leaves have length 1."""
        leaves = [*inputs, *self._constants]
        masks = [*masks, *[_ALL_AXES] * len(self._constants)]
        return self._flat.substitute(table, leaves, masks, self._ops, self._types)


def _leaf(variable: Variable[Any, Any]) -> _core.Term:
    """Return the term of a variable of which nothing is known but itself."""
    if isinstance(variable, TensorConstant) and all(one == 1 for one in variable.type.shape):
        # In a kernel it may be a constant of the scalar graph.
        scalar = get_scalar_type(variable.type.dtype)
        return constant_term(scalar.make_constant(variable.data.reshape(())))
    return table.opaque()


def _broadcast_axes(variable: Variable[Any, Any]) -> int:
    """Return the axes of static length 1 as bits; those beyond the last are set.

    What is no tensor has none.
    """
    mask = _ALL_AXES
    for axis, length in enumerate(getattr(variable.type, "shape", ())):
        if length != 1:
            mask &= ~(1 << axis)
    return mask
