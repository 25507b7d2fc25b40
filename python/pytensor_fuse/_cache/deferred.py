"""Deferred copies: graphs that are cached in memory are looked up before they are copied.

`pytensor.function` copies its graph, imports the copy into a `FunctionGraph`, and
rewrites it. If the rewritten graph comes from the cache, the copy is discarded, although making it
took most of the time. So if memory has an entry for the graph, the function's maker gets
outputs whose variables are copied on demand, and an empty `FunctionGraph`.
It is filled from the cache; or else, before any other code sees it, with the copy.

Only the simplest calls, which are nearly all, take this path: calls without replacements and
updates, with variables that PyTensor accepts. PyTensor's own code handles all others, including
those that it refuses.
"""

from __future__ import annotations

import threading
from functools import wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import pytensor.compile.maker as maker
from pytensor.compile.io import In, SymbolicOutput
from pytensor.compile.maker import FunctionMaker
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable

from pytensor_fuse._cache.asked import Asked, DeferredOutput, put_aside
from pytensor_fuse._cache.lookup import prepare_fgraph
from pytensor_fuse._cache.store.memory import memory
from pytensor_fuse._cache.store.setting import Level, level
from pytensor_fuse._errors import FreezeError
from pytensor_fuse._identity.terms import intern_graph
from pytensor_fuse._pytensor.compat.checks import REPLACED_CODES, plain_function
from pytensor_fuse._pytensor.linking.makers import maker_of_caller
from pytensor_fuse._pytensor.patching.drop_ins import ReplacedCode
from pytensor_fuse._pytensor.patching.patches import ReplacedAttributes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_stock_construct: Any = vars(maker)["construct_function_ins_and_outs"]
# Traces wrap it; the wrapped function runs other code while this patch is on.
_init_of_makers: Any = plain_function(FunctionMaker.__init__)
_stock_init: Any = FunctionType(
    REPLACED_CODES.get(_init_of_makers.__code__, _init_of_makers.__code__),
    _init_of_makers.__globals__,
    _init_of_makers.__name__,
    _init_of_makers.__defaults__,
)
_stock_create: Any = FunctionMaker.create_fgraph


class _Making(threading.local):
    """The graph whose maker is being constructed in this thread."""

    asked: Asked | None = None


_making: Final = _Making()


@wraps(_stock_construct)
def _construct(
    params: Any,
    outputs: Any = None,
    updates: Any = None,
    givens: Any = None,
    no_default_updates: Any = False,
    rebuild_strict: Any = True,
    allow_input_downcast: Any = None,
    fgraph: Any = None,
) -> Any:
    def stock(of: Any = outputs) -> Any:
        return _stock_construct(
            params,
            of,
            updates=updates,
            givens=givens,
            no_default_updates=no_default_updates,
            rebuild_strict=rebuild_strict,
            allow_input_downcast=allow_input_downcast,
            fgraph=fgraph,
        )

    is_plain = not updates and not givens and no_default_updates is False and fgraph is None
    if not is_plain or not len(memory) or level() not in (Level.MEMORY, Level.DISK):
        return stock()
    is_one = not isinstance(outputs, list | tuple)
    given = [outputs] if is_one else list(outputs)

    def copy() -> list[Any]:
        made: list[Any] = stock(given)[1]
        return made

    asked = _asked(params, given, copy)
    # Other makers may look at their variables.
    if asked is None or maker_of_caller() is not FunctionMaker:
        return stock()
    # PyTensor itself makes inputs from the shared variables of the graph, in this order.
    inputs, _ = stock([one for one in asked.inputs if isinstance(one, SharedVariable)])
    deferred = [
        DeferredOutput(asked, place, getattr(one, "borrow", False))
        for place, one in enumerate(given)
    ]
    return inputs, deferred[0] if is_one else deferred


def _asked(params: Any, outputs: Sequence[Any], copy: Callable[[], list[Any]]) -> Asked | None:
    """Return the requested graph of a plain call, if it may be in memory; otherwise None."""
    if not isinstance(params, list | tuple) or not outputs:
        return None
    inputs = [_variable(one, In) for one in params]
    results = [_variable(one, SymbolicOutput) for one in outputs]
    if None in inputs or None in results:
        return None
    if any(one.update is not None for one in params if type(one) is In):
        return None
    leaves = _leaves(results)
    given = set(inputs)
    shared = [one for one in leaves if one not in given]
    # PyTensor raises an error for inputs that are given twice or not used.
    if len(given) < len(inputs) or not given <= set(leaves):
        return None
    if not all(map(_is_plain_input, inputs)):
        return None
    if not all(isinstance(one, SharedVariable) and one.default_update is None for one in shared):
        return None
    try:
        graph = intern_graph([*inputs, *shared], results, fold=False)
    except FreezeError:
        return None
    # PyTensor raises an error for a graph that overwrites something.
    if graph.destroys or not memory.has_graph(graph.root):
        return None
    return Asked([*inputs, *shared], results, graph, copy)


def _variable(one: Any, spec: Any) -> Any:
    found: Any = one.variable if type(one) is spec else one
    return found if isinstance(found, Variable) else None


def _is_plain_input(one: Variable[Any, Any]) -> bool:
    return one.owner is None and not isinstance(one, Constant | SharedVariable)


def _leaves(outputs: Sequence[Variable[Any, Any]]) -> list[Any]:
    """Return the leaves of a graph, without constants, in PyTensor's order.

    Depth first from the first output, the first input of a node first; O(nodes + edges).
    """
    leaves = []
    known: set[Any] = set()
    pending = list(outputs[::-1])
    while pending:
        variable = pending.pop()
        node = variable.owner
        met = variable if node is None else node
        if met in known:
            continue
        known.add(met)
        if node is not None:
            pending += node.inputs[::-1]
        elif not isinstance(variable, Constant):
            leaves.append(variable)
    return leaves


def _init(
    self: Any,
    inputs: Any,
    outputs: Any,
    mode: Any,
    accept_inplace: Any,
    function_class: Any,
    profile: Any,
    on_unused_input: Any,
    fgraph: Any,
    name: Any,
    no_fgraph_prep: Any,
    trust_input: Any,
) -> None:
    # This code runs in PyTensor's module, without the globals of this one.
    from pytensor_fuse._cache.deferred import init_maker

    init_maker(
        self,
        inputs,
        outputs,
        mode=mode,
        accept_inplace=accept_inplace,
        function_class=function_class,
        profile=profile,
        on_unused_input=on_unused_input,
        fgraph=fgraph,
        name=name,
        no_fgraph_prep=no_fgraph_prep,
        trust_input=trust_input,
    )


def init_maker(self: Any, inputs: Any, outputs: Any, **options: Any) -> None:
    """Do as `FunctionMaker.__init__`, without copying a graph that is in memory."""
    asked = _asked_by(inputs, outputs)
    # Another maker rewrites differently, or not at all.
    if (
        asked is None
        or type(self) is not FunctionMaker
        or FunctionMaker.prepare_fgraph is not prepare_fgraph
        or options["fgraph"] is not None
        or options["no_fgraph_prep"]
    ):
        _stock_init(self, inputs, outputs, **options)
        return
    asked.is_taken = True
    try:
        _making.asked = asked
        # Empty graphs must be filled even if the cache is switched off meanwhile.
        vars(self)["prepare_fgraph"] = prepare_fgraph
        # All inputs are used; checking it would need the copy.
        _stock_init(self, inputs, outputs, **{**options, "on_unused_input": "ignore"})
    finally:
        _making.asked = None
        vars(self).pop("prepare_fgraph", None)
    self.on_unused_input = options["on_unused_input"]


def _asked_by(inputs: Any, outputs: Any) -> Asked | None:
    """Return the deferred graph with these inputs and outputs, if there is one; otherwise None."""
    given = outputs if isinstance(outputs, list | tuple) else [outputs]
    if not given or type(given[0]) is not DeferredOutput or not isinstance(inputs, list):
        return None
    asked: Asked = given[0].asked
    places = [one.place for one in given if type(one) is DeferredOutput and one.asked is asked]
    is_all = places == list(range(len(asked.outputs))) and len(places) == len(given)
    # By identity, because variables may define their own equality.
    read = [id(getattr(one, "variable", one)) for one in inputs]
    is_all = is_all and read == list(map(id, asked.inputs))
    return asked if is_all and not asked.is_taken else None


@wraps(_stock_create)
def _create_fgraph(input_specs: Any, output_specs: Any, *args: Any, **kwargs: Any) -> Any:
    asked: Asked | None = _making.asked
    _making.asked = None
    # Another maker may be constructed first.
    if asked is None or all(getattr(one, "asked", None) is not asked for one in output_specs):
        return _stock_create(input_specs, output_specs, *args, **kwargs)
    # The features that are attached here do not look at nodes.
    made = _stock_create(input_specs, [], *args, **kwargs)
    put_aside(made[0], asked)
    return made


def deferred_graphs() -> ReplacedAttributes:
    """Return the patch that leaves graphs empty until they are looked up."""
    return ReplacedAttributes([FunctionMaker], "create_fgraph", staticmethod(_create_fgraph))


def deferring_makers() -> ReplacedCode:
    """Return the patch that marks makers whose graphs may be left empty."""
    return ReplacedCode(_init_of_makers, _init)


def deferred_copies() -> ReplacedAttributes:
    """Return the patch that defers the copy of graphs that may be in memory."""
    return ReplacedAttributes([maker], "construct_function_ins_and_outs", _construct)
