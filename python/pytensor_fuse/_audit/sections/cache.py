"""The part of an audit about Numba's cache: whether other processes can use what was compiled.

PyTensor's Numba linker gives Numba a key for each function that it makes of an op, and one for the
whole graph, made of these. With a key, Numba stores the machine code and other processes load it.
There is no key for the whole if there is none for one of the ops. Even with a key, Numba stores no
code that holds an address of this process, and such is what it makes of an array constant that is
longer than a megabyte, or not contiguous. The functions of the other ops are stored all the same.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.configdefaults import config
from pytensor.graph.basic import Constant
from pytensor.link.numba.linker import NumbaLinker

from pytensor_fuse._audit.shapes import sparse_parts
from pytensor_fuse._identity.terms import term
from pytensor_fuse._pytensor.inner_graphs import GRAPH_OPS
from pytensor_fuse._reports.tables import bounded, paragraphs, place, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.compile.executor import Function
    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._audit.graph import GraphContext
    from pytensor_fuse._core import Term

# The bytes of an array that Numba makes part of the code: `size_limit` in `make_constant_array`.
_LONGEST = 10**6


@dataclass(frozen=True, eq=False)
class CacheCulprit:
    """What keeps Numba from storing a function.

    Attributes
    ----------
    node
        The node whose op has no key, or the first that reads the constant; None if the constant is
        an output and no node reads it.
    constant
        The constant, if it is one.
    name
        The name of the node.
    path
        The names of the nodes in whose inner graphs it is, the outermost first.
    why
        The reason, in words.
    """

    node: Apply[Any] | None
    constant: Constant[Any] | None
    name: str
    path: tuple[str, ...]
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        return {"name": self.name, "path": list(self.path), "why": self.why}

    def __str__(self) -> str:
        return f"{place(self.path, self.name)}: {self.why}"


@dataclass(frozen=True, eq=False)
class CachingSection:
    """What an audit found about Numba's cache.

    Attributes
    ----------
    numba
        Whether the function was compiled by Numba. If not, nothing else is known.
    enabled
        Whether PyTensor's ``numba__cache`` is set now.
    has_key
        Whether the function had a key when it was compiled.
    culprits
        What keeps the function from being stored.
    stored
        Whether Numba could store all that it has compiled of the function, which it does at the
        first call with new types; None before any call.
    """

    numba: bool
    enabled: bool = False
    has_key: bool = False
    culprits: tuple[CacheCulprit, ...] = ()
    stored: bool | None = None

    @property
    def cacheable(self) -> bool | None:
        """Whether other processes can use what Numba compiles; None if it is not Numba."""
        if not self.numba:
            return None
        return self.has_key and not self.culprits and self.stored is not False

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""
        return {
            "numba": self.numba,
            "enabled": self.enabled,
            "cacheable": self.cacheable,
            "has_key": self.has_key,
            "stored": self.stored,
            "culprits": [culprit.to_dict() for culprit in self.culprits],
        }

    def lines(self) -> list[str]:
        """Return the lines of the text; their number is bounded."""
        culprits = bounded(self.culprits, str, "of these")
        return [self._summary(), *(f"  {line}" for line in culprits)]

    def html(self) -> str:
        """Return the body of the section."""
        rows = [(place(c.path, c.name), c.why) for c in self.culprits]
        listed = table(("node", "why"), rows) if rows else ""
        return paragraphs([self._summary()]) + listed

    def _summary(self) -> str:
        if not self.numba:
            return "not compiled by Numba"
        if self.cacheable:
            return "other processes can load what Numba compiles"
        if not self.has_key and not self.enabled:
            return "PyTensor's numba__cache is off: each process compiles the function anew"
        unknown = "" if self.culprits else ", and nothing in its graph says why"
        return f"each process compiles the function anew{unknown}"


def audit_cache(context: GraphContext) -> CachingSection:
    """Find out whether Numba can store a function, and what keeps it from that.

    Notes
    -----
    Only of a function without a key, each different op is asked for one again: O(nodes), and the
    time to write the functions of these ops, not to compile them.
    """
    if not isinstance(context.linker, NumbaLinker) or context.function is None:
        return CachingSection(numba=False)
    has_key, stored = _outcome(context.function)
    enabled = bool(config.numba__cache)
    culprits: list[CacheCulprit] = []
    if has_key or enabled:
        culprits = list(_dynamic_constants(context))
    if not has_key and enabled:
        culprits += _without_key(context, {})
    return CachingSection(True, enabled, has_key, tuple(culprits), stored)


def _outcome(function: Function) -> tuple[bool, bool | None]:
    """Return whether a function has a key, and whether what has been compiled could be stored."""
    from pytensor.link.numba.cache import CACHED_SRC_FUNCTIONS

    compiled: Any = getattr(function.vm, "jit_fn", None)
    # Numba compiles nothing if it is told not to.
    source = getattr(compiled, "py_func", None)
    has_key = source is not None and source in CACHED_SRC_FUNCTIONS
    results = list(getattr(compiled, "overloads", {}).values())
    if not results:
        return has_key, None
    return has_key, has_key and not any(_has_addresses(result) for result in results)


def _has_addresses(result: Any) -> bool:
    return bool(result.library.has_dynamic_globals or any(not x.can_cache for x in result.lifted))


def _graphs(context: GraphContext) -> Iterator[GraphContext]:
    """Iterate over the graphs that become functions of their own, other than by an op's own way."""
    yield context
    for node, inner in context.inner:
        if _is_graph(node):
            yield from _graphs(inner)


def _is_graph(node: Apply[Any]) -> bool:
    """Whether the function of ``node`` is one of its inner graph."""
    from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key as dispatcher

    generic = [dispatcher.dispatch(kind) for kind in GRAPH_OPS]
    return dispatcher.dispatch(type(node.op)) in generic


def _dynamic_constants(context: GraphContext) -> Iterator[CacheCulprit]:
    for graph in _graphs(context):
        met: set[Variable[Any, Any]] = set()
        reads = [(variable, node) for node in graph.order for variable in node.inputs]
        for variable, node in [*reads, *((output, None) for output in graph.fgraph.outputs)]:
            if not isinstance(variable, Constant) or variable in met:
                continue
            met.add(variable)
            why = _why_dynamic(variable)
            if why:
                name = "an output" if node is None else graph.name(node)
                yield CacheCulprit(node, variable, name, graph.path, why)


def _why_dynamic(constant: Constant[Any]) -> str | None:
    """Say why a constant is not part of the code but an address; None if it is part."""
    from pytensor.link.numba.dispatch.basic import numba_typify

    # What Numba is given: some versions of PyTensor copy an array so that it is contiguous.
    data = numba_typify(constant.data, variable=constant)
    name = f"constant {constant.name}" if constant.name else "a constant"
    for array in [data] if isinstance(data, np.ndarray) else sparse_parts(data):
        if array.nbytes > _LONGEST:
            return f"{name} of {array.nbytes} bytes, more than the {_LONGEST} that Numba stores"
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            return f"{name} that is not contiguous in memory"
    return None


def _without_key(
    context: GraphContext, known: dict[tuple[Term, ...], str | None]
) -> Iterator[CacheCulprit]:
    for graph in _graphs(context):
        for node in graph.order:
            if _is_graph(node):
                continue
            kinds = [term(variable.type) for variable in (*node.inputs, *node.outputs)]
            key = (term(node.op), *kinds)
            if key not in known:
                known[key] = _why_no_key(node)
            why = known[key]
            if why:
                yield CacheCulprit(node, None, graph.name(node), graph.path, why)


def _why_no_key(node: Apply[Any]) -> str | None:
    """Say why the op of ``node`` has no key; None if it has one."""
    from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            key = numba_funcify_and_cache_key(node.op, node=node)[1]
        except Exception as error:  # Somebody's implementation fails in whatever way it likes.
            return f"its key cannot be had: {type(error).__name__}: {error}"
    if key is not None:
        return None
    if any("object mode" in str(warning.message) for warning in said):
        return "Numba has no implementation of it and calls back to Python"
    return "its implementation for Numba gives no key"
