"""Lowering of a graph to a program: each node in order, by its rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Constant
from pytensor.tensor.type_other import NoneTypeT

from pytensor_fuse._native.lowering.context import Context
from pytensor_fuse._native.lowering.indexing.fused import inner_graph
from pytensor_fuse._native.lowering.parts import (
    constant_of,
    is_array,
    new_inputs,
    received,
    type_parts,
    used_once,
)
from pytensor_fuse._native.lowering.registry import NoRuleError, RuleError, lower
from pytensor_fuse._native.lowering.sparse.matrices import SparseMatrix
from pytensor_fuse._native.lowering.tensors import DTYPES, NOTHING, Tensor
from pytensor_fuse._native.lowering.values import OwningBuilder, RuleBuilder
from pytensor_fuse._native.program.model import Operand, Result

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pytensor_fuse._native.lowering.types import (
        Array,
        BufferId,
        Node,
        Program,
        Tensors,
        Variable,
        Variables,
    )


class Lowered(NamedTuple):
    """A graph as a program.

    Attributes
    ----------
    program
        The program, as emitted by the rules.
    constants
        The C-contiguous arrays of its constants.
    copies
        The graph inputs of which the program receives copies to overwrite, behind all other inputs.
    """

    program: Program
    constants: list[Array]
    copies: tuple[int, ...]


def variable_refusal(variable: Variable) -> str | None:
    """Return the reason why a variable cannot be an input or output of a program, or None."""
    kind = variable.type
    if type_parts(kind) is not None:
        return None
    return (
        f"a variable of dtype {kind.dtype}" if is_array(variable) else f"a variable of type {kind}"
    )


def lower_graph(
    inputs: Variables,
    outputs: Variables,
    nodes: Iterable[Node],
    *,
    destroyed: Collection[int] = (),
    reassociates: bool = False,
    calls_libm: bool = False,
) -> Lowered:
    """Lower a graph to a program.

    Parameters
    ----------
    inputs, outputs
        The variables of the graph.
    nodes
        Its nodes in an executable order, readers of a value before those who overwrite it.
    destroyed
        The positions of the inputs that may be overwritten.
    reassociates
        Whether sums and products may be reassociated.
    calls_libm
        Whether to use the mathematical functions of Numba's back end, for bitwise equal results.

    Returns
    -------
    Lowered
        The program and its constants.

    Raises
    ------
    NoRuleError
        If a node, an input or an output cannot be lowered.
    RuleError
        If a rule has a fault.
    """
    # Checked objects for each value take time, and only third-party rules need the checks.
    kind = OwningBuilder if lower.has_others else RuleBuilder
    builder = kind(reassociates=reassociates, calls_libm=calls_libm)
    graph = _Graph(Context(builder), {})
    for position, variable in enumerate(inputs):
        graph.give(variable, position, may_destroy=position in destroyed)
    nodes = list(nodes)
    graph.context.used_once |= used_once(nodes, outputs)
    for node in nodes:
        graph.lower(node)
    for variable in outputs:
        graph.give_back(variable)
    builder.place_allocations()
    context = graph.context
    program = context.builder.program
    if context.others:
        from pytensor_fuse._native.lowering.others.rules import verify_with_others

        verify_with_others(program, context.others)
    return Lowered(program, context.constants, tuple(context.copies))


class _Graph:
    """A graph that is being lowered, with the tensor of each variable so far."""

    def __init__(self, context: Context, tensors: dict[Variable, Tensor]) -> None:
        self.context = context
        self._tensors = tensors

    def give(self, variable: Variable, position: int, *, may_destroy: bool) -> None:
        """Add a variable as an input of the program."""
        why = variable_refusal(variable)
        if why is not None:
            raise NoRuleError(f"{why} as an input")
        context = self.context
        tensors = new_inputs(context, variable.type, may_destroy=may_destroy)
        if is_array(variable):
            [self._tensors[variable]] = tensors
            return
        self._tensors[variable] = received(variable.type, context, tensors)
        context.arguments[self._tensors[variable]] = position

    def tensor(self, variable: Variable) -> Tensor:
        """Return the tensor of a variable."""
        found = self._tensors.get(variable)
        if found is None:
            if not isinstance(variable, Constant):
                raise NoRuleError(f"{variable} is not computed by the graph")
            if isinstance(variable.type, NoneTypeT):
                return NOTHING
            found = constant_of(variable.type, self.context, variable)
            self._tensors[variable] = found
        return found

    def lower(self, node: Node) -> None:
        """Lower a node whose operands have been lowered."""
        given = [self.tensor(variable) for variable in node.inputs]
        try:
            if lower.is_own(node.op):
                outs = lower(node.op, node, self.context, given)
            else:
                # A local import: few programs use third-party rules.
                from pytensor_fuse._native.lowering.others.rules import lowered_by_others

                outs = lowered_by_others(node, self.context, given)
            _require_declared(node, outs)
        except (NoRuleError, RuleError) as error:
            error.node = error.node or node
            raise
        except Exception as error:
            from pytensor_fuse._native.lowering.others.rules import fault

            raise fault(node, error) from error
        self._tensors.update(zip(node.outputs, outs, strict=True))

    def give_back(self, variable: Variable) -> None:
        """Add a variable as the next output of the program."""
        why = variable_refusal(variable)
        if why is not None:
            raise NoRuleError(f"{why} as an output")
        whole = self.tensor(variable)
        # An argument that is not an array, or a copy of it, is returned itself.
        is_itself = whole in self.context.arguments
        for tensor in whole.parts or (whole,):
            self._give_back_part(tensor, is_itself=is_itself)

    def _give_back_part(self, tensor: Tensor, *, is_itself: bool) -> None:
        context = self.context
        builder = context.builder
        results = builder.program.results
        about = None if tensor.buffer is None else builder.program.buffers[tensor.buffer]
        is_given = is_itself or tensor.buffer in context.overwritten
        if about is not None and about.kind == "input" and is_given:
            results.append(Result("input", about.position))
            return
        if about is not None and about.kind == "temporary":
            self._become_output(tensor.buffer, len(results))
            return
        lengths = [context.length(length) for length in tensor.lengths]
        buffer = builder.buffer("output", len(results), tensor.dtype, lengths)
        results.append(Result("buffer", buffer))
        builder.allocate(buffer)
        context.fill(Operand(buffer), tensor.at)

    def _become_output(self, buffer: BufferId | None, position: int) -> None:
        """Turn a temporary buffer into an output."""
        builder = self.context.builder
        assert buffer is not None
        about = builder.program.buffers[buffer]
        about.kind, about.position = "output", position
        builder.program.results.append(Result("buffer", buffer))
        builder.allocate_before_use(buffer)


def _require_declared(node: Node, outs: Sequence[Tensor]) -> None:
    """Check a rule's results against the declared types, by which result arrays are allocated.

    Raises
    ------
    TypeError
        If a rule returns other dtypes or numbers of axes.
    """
    declared: list[Any] = []
    made: list[Any] = []
    for out, one in zip(node.outputs, outs, strict=False):
        parts = [(DTYPES[part.dtype], len(part.shape)) for part in type_parts(out.type) or ()]
        declared.append(parts[0] if is_array(out) and parts else tuple(parts))
        own = [(part.dtype, part.ndim) for part in one.parts]
        made.append(tuple(own) if own else (one.dtype, one.ndim))
    is_right = len(outs) == len(node.outputs) and all(
        mine == theirs or one is NOTHING
        for mine, theirs, one in zip(made, declared, outs, strict=True)
    )
    if not is_right:
        raise TypeError(f"it returns tensors of (dtype, axes) {made} for outputs of {declared}")


def lower_inner(
    context: Context,
    inputs: Variables,
    outputs: Variables,
    nodes: Iterable[Node],
    given: Sequence[Tensor],
    *,
    destroyed: Collection[int] = (),
) -> Tensors:
    """Emit the statements of an inner graph in place of its node.

    Parameters
    ----------
    context
        The lowering.
    inputs, outputs, nodes
        The variables and nodes of the inner graph.
    given
        The tensors of its inputs.
    destroyed
        The positions of its generators that it may change.

    Returns
    -------
    list of Tensor
        Its outputs.
    """
    graph = _Graph(context, dict(zip(inputs, given, strict=True)))
    nodes = list(nodes)
    outer = context.used_once
    if any(one.parts for one in given):
        kept = {one for position, one in enumerate(inputs) if position not in destroyed}
        context.used_once = outer | (used_once(nodes, outputs) - kept)
    for node in nodes:
        graph.lower(node)
    context.used_once = outer
    return [graph.tensor(variable) for variable in outputs]


def graph_refusal(graph: Any) -> str | None:
    """Return the reason why a node of an inner graph cannot be lowered, or None."""
    for inner in graph.toposort():
        why = lower.refusal(inner)
        if why is not None:
            return f"inside of it: {why}"
    return None


def _refuses_inner(op: OpFromGraph, node: Node) -> str | None:
    return graph_refusal(op.fgraph)


@lower.register(OpFromGraph, refuses=_refuses_inner)
def _op_from_graph(op: OpFromGraph, node: Node, context: Context, inputs: Tensors) -> Tensors:
    outputs, nodes = inner_graph(op)
    n_before = len(context.builder.program.buffers)
    destroyed = [place for places in op.destroy_map.values() for place in places]
    destroyed += [place for place, one in enumerate(node.inputs) if one in context.used_once]
    outs = lower_inner(context, op.fgraph.inputs, outputs, nodes, inputs, destroyed=destroyed)
    # The op declares no output as a view, so its inputs may be overwritten while others still read
    # the outputs.
    own: Tensors = []
    known: set[int] = set()
    for one in outs:
        if one.parts:
            own.append(one.copied(context) if isinstance(one, SparseMatrix) else one)
            continue
        lies_in = None if one.layout is None else one.layout.buffer
        if lies_in is None or lies_in < n_before or lies_in in known:
            one = context.materialized(one.dtype, one.lengths, one.at)
        if one.layout is not None:
            known.add(one.layout.buffer)
        own.append(one)
    return own
