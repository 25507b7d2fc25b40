"""Construction of the report on a compiled function or a graph."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pytensor.compile.executor import Function
from pytensor.graph.basic import Apply
from pytensor.link.numba.linker import NumbaLinker

from pytensor_fuse._native.explain.assembly import register_bits
from pytensor_fuse._native.explain.loops import buffer_names, buffers_of, calls_of, loops_of
from pytensor_fuse._native.explain.records import NativeRegion, NativeState, NotNative, PythonRuns
from pytensor_fuse._native.explain.report import NativeReport
from pytensor_fuse._native.linking.graphs import (
    Refusal,
    late_refusal,
    late_refusals,
    lowered_graph,
    refusals,
)
from pytensor_fuse._native.linking.regions import parts_of
from pytensor_fuse._native.linking.whole import native_thunk_of, python_run_of
from pytensor_fuse._native.lowering.parts import input_parts
from pytensor_fuse._native.lowering.registry import NoRuleError, RuleError
from pytensor_fuse._native.program.text import print_program
from pytensor_fuse._native.runtime.compiling import Compiled, Emitted, emitted
from pytensor_fuse._native.runtime.llvm import assembly
from pytensor_fuse._pytensor.graphs.run_order import run_order
from pytensor_fuse._reports.asked import function_or_graph, subject
from pytensor_fuse._reports.names import node_name, op_name
from pytensor_fuse._reports.text import count, short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._native.lowering.types import Node, Nodes, Variable, Variables
    from pytensor_fuse._reports.asked import GraphLike


def explain_native(graph: GraphLike) -> NativeReport:
    """Return a report on a graph's compilation to machine code, with the reasons for its limits.

    Parameters
    ----------
    graph : Function, FunctionGraph or Variable
        A compiled function, or PyMC's point function that holds one, or a variable that has been
        evaluated, which stands for its latest function. Or a graph, which is lowered to a loop
        program for the report; it should have been rewritten for Numba mode. Nothing is changed or
        run.

    Returns
    -------
    NativeReport
        The native and the other parts, with loops and memory.

    Raises
    ------
    TypeError
        If the argument is none of these.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor.graph.fg import FunctionGraph
    >>> from pytensor_fuse import explain
    >>> x = pt.vector("x", shape=(1000,))
    >>> found = explain(FunctionGraph([x], [pt.exp(x).sum()]), "native")
    >>> found.state.value
    'not compiled; it would become machine code as a whole'
    >>> [loop.extent for loop in found.loops]
    [1000]
    >>> m = pt.matrix("m")
    >>> pinv = FunctionGraph([m], [pt.linalg.pinv(m)])
    >>> [one.why for one in explain(pinv, "native").not_native]
    ['for each of a batch: no rule for MatrixPinv']
    """
    compiled = function_or_graph("explain", graph)
    return _of_function(compiled) if isinstance(compiled, Function) else _of_graph(compiled)


def not_native(fgraph: FunctionGraph, order: Nodes) -> tuple[NotNative, ...]:
    """Return the reasons why a graph is not machine code as a whole, without emitting code.

    Parameters
    ----------
    fgraph
        The graph.
    order
        Its nodes in the order of execution, from which their names are derived.
    """
    try:
        refused = refusals(fgraph, order)
    except RuleError as error:
        refused = [late_refusal(error, fgraph)]
    return _named(refused, order)


def _named(refused: Sequence[Refusal], order: Nodes) -> tuple[NotNative, ...]:
    places = {node: place for place, node in enumerate(order)}
    found = []
    for culprit, reason in refused:
        # Nodes of frozen inner graphs are of another class.
        op = getattr(culprit, "op", None)
        if isinstance(culprit, Apply) and culprit in places:
            name = node_name(places[culprit], culprit)
        elif op is not None:
            name = f"{op_name(op)} inside of another op"
        else:
            name = f"the variable {short(culprit)}"
        found.append(NotNative(name, reason))
    return tuple(found)


def native_state(function: Function | None, refused: Sequence[NotNative]) -> NativeState:
    """Return the state of a graph's compilation.

    Parameters
    ----------
    function
        The function that it has been compiled into, if any.
    refused
        The reasons why it is not machine code as a whole.
    """
    if function is None:
        return NativeState.COULD_NOT if refused else NativeState.COULD
    if native_thunk_of(function) is not None:
        return NativeState.WHOLE
    if not isinstance(function.maker.linker, NumbaLinker):
        return NativeState.OTHER
    if python_run_of(function) is not None:
        return NativeState.PYTHON
    if parts_of(function.maker.fgraph) is not None:
        return NativeState.PARTS
    return NativeState.NO_RULE if refused else NativeState.NUMBA


def _of_function(function: Function) -> NativeReport:
    fgraph, order = function.maker.fgraph, run_order(function)[0]
    thunk, run = native_thunk_of(function), python_run_of(function)
    parts = parts_of(fgraph) if run is None else run.parts
    refused = not_native(fgraph, order)
    if not refused and thunk is None:
        refused = _named(late_refusals(fgraph, order), order)
    found: list[tuple[Compiled, Variables, Variables]] = []
    if thunk is not None:
        found = [(thunk.compiled, fgraph.inputs, fgraph.outputs)]
    elif parts is not None:
        found = [(one.compiled, one.inner_inputs, one.inner_outputs) for one in parts.regions]
    regions = tuple(
        _region(
            [one for one in enumerate(order) if one[1] in among],
            _by_part(inputs, made.copies),
            _by_part(outputs),
            made,
            made.origin,
        )
        for made, inputs, outputs in found
        for among in [_between(inputs, outputs)]
    )
    python_runs = None if run is None else PythonRuns(run.n_runs, run.most_runs)
    return NativeReport(
        title=f"{subject(function)} of {count(len(order), 'node')}",
        linker=type(function.maker.linker).__name__,
        state=native_state(function, refused),
        not_native=refused,
        regions=regions,
        python_runs=python_runs,
    )


def _of_graph(fgraph: FunctionGraph) -> NativeReport:
    order = tuple(fgraph.toposort())
    refused = not_native(fgraph, order)
    regions: tuple[NativeRegion, ...] = ()
    if not refused:
        try:
            regions = (_would_be(fgraph, order),)
        except (NoRuleError, RuleError) as error:
            refused = _named([late_refusal(error, fgraph)], order)
    return NativeReport(
        title=f"{subject(fgraph)} of {count(len(order), 'node')}",
        linker=None,
        state=native_state(None, refused),
        not_native=refused,
        regions=regions,
    )


def _would_be(fgraph: FunctionGraph, order: tuple[Node, ...]) -> NativeRegion:
    """Lower and emit a graph as LLVM text without compiling it."""
    since = time.perf_counter()
    lowered = lowered_graph(fgraph, order)
    made = emitted(lowered.program, lowered.constants, since=since)
    inputs, outputs = _by_part(fgraph.inputs, lowered.copies), _by_part(fgraph.outputs)
    return _region(list(enumerate(order)), inputs, outputs, made, None)


def _between(inputs: Variables, outputs: Variables) -> set[Node]:
    """Return the nodes that compute outputs from inputs."""
    found: set[Node] = set()
    given, pending = set(inputs), list(outputs)
    while pending:
        variable = pending.pop()
        node = variable.owner
        if node is not None and variable not in given and node not in found:
            found.add(node)
            pending.extend(node.inputs)
    return found


def _region(
    numbered: Sequence[tuple[int, Node]],
    inputs: Variables,
    outputs: Variables,
    made: Compiled | Emitted,
    origin: str | None,
) -> NativeRegion:
    program, placement, module = made.program, made.placement, made.module
    names = buffer_names(program, _called(inputs), _called(outputs))
    buffers = buffers_of(program, placement, names)
    temporary = [one for one in buffers if one.kind == "temporary"]
    bits = register_bits(assembly(module.text), module.loops)
    return NativeRegion(
        nodes=tuple(node_name(place, node) for place, node in numbered),
        loops=loops_of(program, module.loops, bits, names),
        calls=calls_of(program, names),
        buffers=buffers,
        scratch_bytes=placement.n_bytes,
        has_late_sizes=any(one.n_bytes is None for one in temporary),
        seconds=dict(made.seconds),
        origin=origin,
        native_math="libm" if program.calls_libm else "vector",
        text=print_program(program),
        llvm=module.text,
    )


def _by_part(variables: Variables, copies: Sequence[int] = ()) -> list[Variable]:
    """Return the variable behind each part of the machine code's arguments."""
    return [variables[place] for place, _ in input_parts(variables, copies)]


def _called(variables: Variables) -> list[str]:
    return ["" if one.name is None else short(one.name) for one in variables]
