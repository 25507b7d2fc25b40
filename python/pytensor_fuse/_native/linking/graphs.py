"""Graphs as thunks of machine code. Loaded when the first graph is linked: it takes a while."""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytensor.configdefaults import config
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import ScalarType

from pytensor_fuse._cache.entry import weight_of_bytes
from pytensor_fuse._cache.linked import linked_in_parts, linked_otherwise, shared_by
from pytensor_fuse._cache.memory import memory
from pytensor_fuse._errors import NativeLinkError
from pytensor_fuse._native.linking import sparse
from pytensor_fuse._native.linking.destroyed import destroyed_inputs
from pytensor_fuse._native.linking.lifetimes import keep_with
from pytensor_fuse._native.linking.parts import ThunkOfParts, numba_function
from pytensor_fuse._native.linking.python_runs import python_run
from pytensor_fuse._native.linking.regions import parts_of, take_apart
from pytensor_fuse._native.linking.thunks import native_thunk
from pytensor_fuse._native.lowering import rules
from pytensor_fuse._native.lowering.graph import lower_graph, variable_refusal
from pytensor_fuse._native.lowering.parts import is_array
from pytensor_fuse._native.lowering.registry import NoRuleError, RuleError, lower
from pytensor_fuse._native.runtime.compiling import compile_program
from pytensor_fuse._native.setting import calls_libm
from pytensor_fuse._pytensor.optimizers import is_optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._cache.entry import Entry
    from pytensor_fuse._cache.inner_constants import Contents
    from pytensor_fuse._cache.linked import Shared
    from pytensor_fuse._native.linking.numba.dispatchers import NativeDispatcher
    from pytensor_fuse._native.linking.python_runs import PythonRun
    from pytensor_fuse._native.linking.thunks import NativeThunk
    from pytensor_fuse._native.lowering.graph import Lowered
    from pytensor_fuse._native.runtime.compiling import Compiled

# Importing them registers them.
_RULES = rules, sparse


class Refusal(NamedTuple):
    """What keeps a graph from machine code.

    Attributes
    ----------
    culprit
        The node or the variable.
    reason
        Why it cannot be lowered.
    """

    culprit: Apply[Any] | Variable[Any, Any]
    reason: str


class _Native(NamedTuple):
    """The code of a graph, for graphs that are equal to it."""

    compiled: Compiled
    contents: Contents
    fastmath: Any
    # How many rules there were: a later one may be another for an op.
    n_registered: int


# In bytes: the program, LLVM's text and the loaded code of a small graph.
_SMALL: Final = 100_000


def _keep(entry: Entry, native: _Native) -> None:
    """Let an entry of the rewrite cache have the code of its graph, if there is room for both."""
    weight = _weight(entry, [native.compiled], native.contents)
    if memory.has_room(entry, weight):
        memory.put_code(entry, native, weight)


def _weight(entry: Entry, codes: Sequence[Compiled], contents: Contents) -> int:
    """Return what the code of a graph keeps alive besides the graph, as the cache counts it."""
    known = {id(one.data) for one in entry.rewritten.constants}
    arrays = [*contents.arrays(), *(array for one in codes for array in one.constants)]
    n_bytes = sum(one.nbytes for one in arrays if id(one) not in known)
    n_bytes += sum(len(one.module.text) + _SMALL for one in codes)
    return weight_of_bytes(n_bytes)


def has_all_rules(fgraph: FunctionGraph) -> bool:
    """Whether no op of a graph needs Numba, as far as ops show; a rule may still refuse a node."""
    return all(lower.has_rule(node.op) or is_optimizer(node.op) for node in fgraph.apply_nodes)


def refusals(fgraph: FunctionGraph, nodes: Sequence[Apply[Any]]) -> list[Refusal]:
    """Return what keeps a graph from being machine code as a whole.

    Raises
    ------
    RuleError
        If what says that a rule refuses a node has a fault.
    """
    found = [
        Refusal(variable, why)
        for variable in (*fgraph.inputs, *fgraph.outputs)
        if (why := variable_refusal(variable)) is not None
    ]
    found += [
        Refusal(variable, "an output that is a number of Python's, and no array")
        for variable in fgraph.outputs
        if isinstance(variable.type, ScalarType)
    ]
    for node in nodes:
        why = lower.refusal(node)
        if why is not None:
            found.append(Refusal(node, why))
    return found


def late_refusals(fgraph: FunctionGraph, nodes: Sequence[Apply[Any]]) -> list[Refusal]:
    """Return what keeps a graph from machine code although each node has a rule."""
    try:
        lowered_graph(fgraph, nodes)
    except NoRuleError as error:
        return [late_refusal(error, fgraph)]
    except Exception:  # A fault, which whoever compiles the graph is warned of.
        return []
    return []


def late_refusal(error: NoRuleError | RuleError, fgraph: FunctionGraph) -> Refusal:
    """Return what a rule has found out only while it wrote, or its fault."""
    return Refusal(error.node or fgraph.outputs[0], str(error))


def lowered_graph(fgraph: FunctionGraph, nodes: Sequence[Apply[Any]]) -> Lowered:
    """Write the program of a graph, as it is compiled.

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


def compile_graph(fgraph: FunctionGraph, nodes: Sequence[Apply[Any]]) -> Compiled:
    """Make machine code of a graph all of whose nodes have rules.

    Raises
    ------
    NoRuleError, RuntimeError
        If that fails all the same.
    """
    since = time.perf_counter()
    lowered = lowered_graph(fgraph, nodes)
    compiled = compile_program(lowered.program, lowered.constants, since=since)
    return compiled._replace(copies=lowered.copies)


def strictly_linked(
    fgraph: FunctionGraph, nodes: list[Apply[Any]], storage_map: Any
) -> NativeThunk:
    """Return the thunk of a graph.

    Raises
    ------
    NativeLinkError
        If there are nodes without a rule.
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
    nodes: list[Apply[Any]],
    storage_map: Any,
    by_numba: Callable[[], Any] | None = None,
) -> NativeThunk | PythonRun | None:
    """Return the thunk of a graph; None if Numba is to compile it.

    Parameters
    ----------
    fgraph
        The graph.
    nodes
        Its nodes in the order in which they are to run.
    storage_map
        The storage of its variables.
    by_numba
        Has Numba compile it, and returns the thunk and the function for Numba, for a graph that
        runs in Python as long as it runs rarely. Without it, no graph does.
    """
    shared = shared_by(fgraph)
    if shared is not None and (known := _of_equal(shared)) is not None:
        linked_otherwise(fgraph)
        return _thunk(fgraph, nodes, known, storage_map)
    if not fgraph.outputs:
        return None
    try:
        if refusals(fgraph, nodes):
            # What Numba has compiled for an equal graph is there at once.
            if by_numba is not None and (shared is None or shared.entry.linked is None):
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
    except NoRuleError:  # `late_refusals` finds out again which rule could not write its node.
        return None
    except RuleError as error:
        _say(str(error))
    except Exception as error:  # A fault of ours must not stop a compilation.
        _say(f"{type(error).__name__}: {error}")
    return None


def _compiled_later(
    fgraph: FunctionGraph,
    nodes: Sequence[Apply[Any]],
    shared: Shared | None,
    by_numba: Callable[[], Any],
) -> Any:
    """Have a graph compiled that has run in Python until now."""
    try:
        _let_numba_have(fgraph, nodes, shared)
    except Exception as error:  # A fault of ours must not stop a call.
        _say(f"{type(error).__name__}: {error}")
    return by_numba()


def _let_numba_have(
    fgraph: FunctionGraph, nodes: Sequence[Apply[Any]], shared: Shared | None
) -> None:
    """Make what can be of a graph's regions, and let Numba have the rest."""
    parts = take_apart(fgraph, nodes)
    if parts is None:
        return
    linked_in_parts(fgraph, parts.told())
    if shared is not None:
        # What Numba makes of the graph is kept whatever it weighs, and has the regions.
        codes = [one.compiled for one in parts.regions]
        memory.put_code(shared.entry, None, _weight(shared.entry, codes, shared.contents))


def keep_parts(fgraph: FunctionGraph, dispatcher: Any) -> None:
    """Let the regions of a graph live as long as what Numba made of it.

    Parameters
    ----------
    fgraph
        The graph.
    dispatcher
        What Numba made of it; equal graphs may share it.
    """
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
    """Return the code of an equal graph, unless somebody has written to its constants since."""
    known = shared.entry.native
    if not isinstance(known, _Native) or known.fastmath != config.numba__fastmath:
        return None
    if known.compiled.program.calls_libm != calls_libm():
        return None
    if known.n_registered != lower.n_registered:
        return None
    if not shared.contents.are_known() or known.contents.told() != shared.contents.told():
        return None
    if not known.contents.are_the_same():
        return None
    return known.compiled


def _thunk(
    fgraph: FunctionGraph, nodes: Sequence[Apply[Any]], compiled: Compiled, storage_map: Any
) -> NativeThunk:
    if not all(is_array(one) for one in (*fgraph.inputs, *fgraph.outputs)):
        by_numba = partial(numba_function, fgraph)
        return native_thunk(compiled, fgraph, storage_map, by_numba, ThunkOfParts)

    def make_jit_fn() -> NativeDispatcher:
        return _dispatcher(fgraph, nodes, compiled)

    return native_thunk(compiled, fgraph, storage_map, make_jit_fn)


def _dispatcher(
    fgraph: FunctionGraph, nodes: Sequence[Apply[Any]], compiled: Compiled
) -> NativeDispatcher:
    from pytensor_fuse._native.linking.numba.dispatchers import dispatcher_of

    # The nodes first: each is pickled after what it reads, however long the chain is.
    parts = list(nodes), list(fgraph.inputs), list(fgraph.outputs)
    return dispatcher_of(compiled, fgraph, (_dispatcher_again, parts))


def _dispatcher_again(
    nodes: Sequence[Apply[Any]],
    inputs: list[Variable[Any, Any]],
    outputs: list[Variable[Any, Any]],
) -> NativeDispatcher:
    """Return the dispatcher of a graph that was pickled, with machine code for this process."""
    fgraph = FunctionGraph(inputs, outputs, clone=False)
    return _dispatcher(fgraph, nodes, compile_graph(fgraph, nodes))
