"""Linking of whole graphs as thunks of machine code; imported with the first graph, for speed.

Modules for graphs that are not machine code as a whole, or whose arguments are not all arrays, are
imported with the first such graph.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytensor.configdefaults import config
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import ScalarType

from pytensor_fuse._cache.link.linked import linked_in_parts, linked_otherwise, shared_by
from pytensor_fuse._cache.store.entry import weight_of_bytes
from pytensor_fuse._cache.store.memory import memory
from pytensor_fuse._errors import NativeLinkError
from pytensor_fuse._native.linking.destroyed import destroyed_inputs
from pytensor_fuse._native.linking.thunks import native_thunk
from pytensor_fuse._native.lowering import rules
from pytensor_fuse._native.lowering.graph import lower_graph, variable_refusal
from pytensor_fuse._native.lowering.parts import is_array
from pytensor_fuse._native.lowering.registry import NoRuleError, RuleError, lower
from pytensor_fuse._native.runtime.compiling import compile_program
from pytensor_fuse._native.setting import calls_libm
from pytensor_fuse._pytensor.linking.numba_settings import compiles, numba_settings
from pytensor_fuse._pytensor.linking.optimizers import is_optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._cache.data.inner_constants import Contents
    from pytensor_fuse._cache.link.linked import Shared
    from pytensor_fuse._cache.store.entry import Entry
    from pytensor_fuse._native.linking.numba.dispatchers import NativeDispatcher
    from pytensor_fuse._native.linking.python_runs import PythonRun
    from pytensor_fuse._native.linking.thunks import NativeThunk
    from pytensor_fuse._native.lowering.graph import Lowered
    from pytensor_fuse._native.lowering.types import Node, Nodes, Variable
    from pytensor_fuse._native.runtime.compiling import Compiled

# The import registers the rules.
_RULES = rules


class Refusal(NamedTuple):
    """The reason why a graph is not machine code.

    Attributes
    ----------
    culprit
        The node or the variable at fault.
    reason
        The reason why it cannot be lowered.
    """

    culprit: Node | Variable
    reason: str


class _Native(NamedTuple):
    """The code of a graph, cached for equal graphs."""

    compiled: Compiled
    contents: Contents
    fastmath: Any
    # The number of rules at the time: a later one may replace the rule of an op.
    n_registered: int


# In bytes: an estimate for the program, the LLVM text and the loaded code of a small graph.
_SMALL: Final = 100_000


def _keep(entry: Entry, native: _Native) -> None:
    """Cache the code of a graph in its entry of the rewrite cache, if there is room for both."""
    weight = _weight(entry, [native.compiled], native.contents)
    if memory.has_room(entry, weight):
        memory.put_code(entry, native, weight)


def _weight(entry: Entry, codes: Sequence[Compiled], contents: Contents) -> int:
    """Return the weight in the cache of the memory that a graph's code adds to the graph."""
    known = {id(one.data) for one in entry.rewritten.constants}
    arrays = [*contents.arrays(), *(array for one in codes for array in one.constants)]
    n_bytes = sum(one.nbytes for one in arrays if id(one) not in known)
    n_bytes += sum(len(one.module.text) + _SMALL for one in codes)
    return weight_of_bytes(n_bytes)


def has_all_rules(fgraph: FunctionGraph) -> bool:
    """Whether all ops of a graph have rules, although a rule may still refuse a node."""
    return all(lower.has_rule(node.op) or is_optimizer(node.op) for node in fgraph.apply_nodes)


def refusals(fgraph: FunctionGraph, nodes: Nodes) -> list[Refusal]:
    """Return the reasons why a graph is not machine code as a whole.

    Raises
    ------
    RuleError
        If the predicate of a rule fails.
    """
    found = [
        Refusal(variable, why)
        for variable in (*fgraph.inputs, *fgraph.outputs)
        if (why := variable_refusal(variable)) is not None
    ]
    found += [
        Refusal(variable, "an output that is a number of Python's, not an array")
        for variable in fgraph.outputs
        if isinstance(variable.type, ScalarType)
    ]
    found += [Refusal(node, why) for node in nodes if (why := lower.refusal(node)) is not None]
    return found


def late_refusals(fgraph: FunctionGraph, nodes: Nodes) -> list[Refusal]:
    """Return the reasons why a graph is not machine code although each node has a rule."""
    try:
        lowered_graph(fgraph, nodes)
    except NoRuleError as error:
        return [late_refusal(error, fgraph)]
    except Exception:  # A fault, of which the compilation of the graph warns.
        return []
    return []


def late_refusal(error: NoRuleError | RuleError, fgraph: FunctionGraph) -> Refusal:
    """Return the refusal for an error that a rule raised during lowering."""
    return Refusal(error.node or fgraph.outputs[0], str(error))


def lowered_graph(fgraph: FunctionGraph, nodes: Nodes) -> Lowered:
    """Return the program of a graph, with the options of its compilation.

    Raises
    ------
    NoRuleError
        If a node cannot be lowered.
    """
    return lower_graph(
        fgraph.inputs,
        fgraph.outputs,
        nodes,
        destroyed=destroyed_inputs(fgraph.inputs, nodes),
        reassociates=bool(config.numba__fastmath),
        calls_libm=calls_libm(),
    )


def compile_graph(fgraph: FunctionGraph, nodes: Nodes) -> Compiled:
    """Compile a graph all of whose nodes have rules.

    Raises
    ------
    NoRuleError, RuntimeError
        If a rule refuses its node during lowering, or LLVM fails.
    """
    since = time.perf_counter()
    lowered = lowered_graph(fgraph, nodes)
    compiled = compile_program(lowered.program, lowered.constants, since=since)
    return compiled._replace(copies=lowered.copies)


def strictly_linked(fgraph: FunctionGraph, nodes: list[Node], storage_map: Any) -> NativeThunk:
    """Return the thunk of a graph.

    Raises
    ------
    NativeLinkError
        If a node cannot be lowered.
    """
    found = [f"{one.culprit}: {one.reason}" for one in refusals(fgraph, nodes)]
    if not found:
        try:
            return _thunk(fgraph, nodes, compile_graph(fgraph, nodes), storage_map)
        except NoRuleError as error:
            found = [str(error) if error.node is None else f"{error.node}: {error}"]
    lines = "\n".join(f"  {one}" for one in found)
    raise NativeLinkError(
        f"the linker native has no machine code for this graph:\n{lines}\n"
        "Compile in mode NUMBA, which leaves these to Numba"
    )


def linked_if_possible(
    fgraph: FunctionGraph,
    nodes: list[Node],
    storage_map: Any,
    by_numba: Callable[[], Any] | None = None,
) -> NativeThunk | PythonRun | None:
    """Return the thunk of a graph; None if Numba must compile it.

    Parameters
    ----------
    fgraph
        The graph.
    nodes
        Its nodes in the order of execution.
    storage_map
        The storage of its variables.
    by_numba
        A function that compiles the graph by Numba and returns the thunk and the dispatcher, for a
        graph that runs in Python as long as it runs rarely. Without it, no graph does.
    """
    shared = shared_by(fgraph)
    if shared is not None and (known := _of_equal(shared)) is not None:
        linked_otherwise(fgraph)
        return _thunk(fgraph, nodes, known, storage_map)
    if not fgraph.outputs:
        return None
    try:
        if refusals(fgraph, nodes):
            # Numba's code of an equal graph is available at once.
            if by_numba is not None and (shared is None or shared.entry.linked is None):
                from pytensor_fuse._native.linking.python_runs import python_run

                later = partial(_compiled_later, fgraph, nodes, shared, by_numba)
                run = python_run(fgraph, nodes, storage_map, later)
                if run is not None:
                    return run
            _let_numba_have(fgraph, nodes, shared)
            return None
        compiled = compile_graph(fgraph, nodes)
        if shared is not None:
            native = _Native(compiled, shared.contents, config.numba__fastmath, lower.n_registered)
            _keep(shared.entry, native)
            linked_otherwise(fgraph)
        return _thunk(fgraph, nodes, compiled, storage_map)
    except NoRuleError:  # `late_refusals` finds the rule that could not lower its node.
        return None
    except RuleError as error:
        _say(str(error))
    except Exception as error:  # An internal error must not stop a compilation.
        _say(f"{type(error).__name__}: {error}")
    return None


def _compiled_later(
    fgraph: FunctionGraph, nodes: Nodes, shared: Shared | None, by_numba: Callable[[], Any]
) -> Any:
    """Compile a graph by Numba after runs in Python."""
    try:
        _let_numba_have(fgraph, nodes, shared)
    except Exception as error:  # An internal error must not stop a call.
        _say(f"{type(error).__name__}: {error}")
    return by_numba()


def _let_numba_have(fgraph: FunctionGraph, nodes: Nodes, shared: Shared | None) -> None:
    """Compile the regions of a graph and leave the rest to Numba."""
    if not compiles(numba_settings()):
        # The nodes are to run as Python functions, which cannot call machine code.
        return
    from pytensor_fuse._native.linking.regions import take_apart

    parts = take_apart(fgraph, nodes)
    if parts is None:
        return
    linked_in_parts(fgraph, parts.told())
    if shared is not None:
        # Numba's code of the graph is cached whatever its weight, and refers to the regions.
        codes = [one.compiled for one in parts.regions]
        memory.put_code(shared.entry, None, _weight(shared.entry, codes, shared.contents))


def keep_parts(fgraph: FunctionGraph, dispatcher: Any) -> None:
    """Keep the regions of a graph alive as long as Numba's code for it.

    Parameters
    ----------
    fgraph
        The graph.
    dispatcher
        Numba's dispatcher for the graph; equal graphs may share it.
    """
    from pytensor_fuse._native.linking.lifetimes import keep_with
    from pytensor_fuse._native.linking.regions import parts_of

    parts = parts_of(fgraph)
    if parts is not None:
        keep_with(dispatcher, [one.place for one in parts.regions])


def _say(reason: str) -> None:
    warnings.warn(
        f"pytensor_fuse leaves a graph to Numba that should have become machine code: {reason}. "
        "Please report it, unless the rule is your own; PYTENSOR_FUSE_NATIVE=off silences this",
        RuntimeWarning,
        stacklevel=3,
    )


def _of_equal(shared: Shared) -> Compiled | None:
    """Return the code of an equal graph, unless its constants have been written to since."""
    known = shared.entry.native
    is_equal = (
        isinstance(known, _Native)
        and known.fastmath == config.numba__fastmath
        and known.compiled.program.calls_libm == calls_libm()
        and known.n_registered == lower.n_registered
        and shared.contents.are_known()
        and known.contents.told() == shared.contents.told()
        and known.contents.are_the_same()
    )
    return known.compiled if is_equal else None


def _thunk(
    fgraph: FunctionGraph, nodes: Nodes, compiled: Compiled, storage_map: Any
) -> NativeThunk:
    if not all(is_array(one) for one in (*fgraph.inputs, *fgraph.outputs)):
        from pytensor_fuse._native.linking import sparse  # noqa: F401  registers these as parts
        from pytensor_fuse._native.linking.parts import ThunkOfParts, numba_function

        by_numba = partial(numba_function, fgraph)
        return native_thunk(compiled, fgraph, storage_map, by_numba, ThunkOfParts)

    return native_thunk(compiled, fgraph, storage_map, lambda: _dispatcher(fgraph, nodes, compiled))


def _dispatcher(fgraph: FunctionGraph, nodes: Nodes, compiled: Compiled) -> NativeDispatcher:
    from pytensor_fuse._native.linking.numba.dispatchers import dispatcher_of

    # The nodes come first: each is pickled after its operands, so long chains need no recursion.
    parts = list(nodes), list(fgraph.inputs), list(fgraph.outputs)
    return dispatcher_of(compiled, fgraph, (_dispatcher_again, parts))


def _dispatcher_again(
    nodes: Nodes, inputs: list[Variable], outputs: list[Variable]
) -> NativeDispatcher:
    """Return the dispatcher of an unpickled graph, with machine code for this process."""
    fgraph = FunctionGraph(inputs, outputs, clone=False)
    return _dispatcher(fgraph, nodes, compile_graph(fgraph, nodes))
