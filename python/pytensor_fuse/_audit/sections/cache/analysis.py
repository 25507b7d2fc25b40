"""Analysis of the obstacles to Numba's caching of a function.

PyTensor's Numba linker gives Numba a key for the function that implements an op, and one for the
whole graph, derived from these. With a key, Numba stores the machine code and other processes load
it. The whole graph has no key if one of the ops has none. Even with a key, Numba does not store
code that contains an address of this process, such as code for an array constant that is longer
than a megabyte or not contiguous. The functions of the other ops are stored nonetheless.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.configdefaults import config
from pytensor.graph.basic import Constant, Variable
from pytensor.link.numba.linker import NumbaLinker

from pytensor_fuse._audit.context.sparse import sparse_parts
from pytensor_fuse._audit.sections.cache.record import CacheCulprit
from pytensor_fuse._audit.sections.cache.section import CachingSection
from pytensor_fuse._identity.terms import term
from pytensor_fuse._native.linking.thunks import NativeThunk
from pytensor_fuse._native.linking.whole import python_run_of
from pytensor_fuse._pytensor.linking.numba_cache import (
    data_for_numba,
    has_key_and_is_stored,
    is_graph,
    why_no_key,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor_fuse._audit.context.graph import GraphContext
    from pytensor_fuse._core import Term

# The maximum bytes of an array in Numba's code: `size_limit` in `make_constant_array`.
_LONGEST = 10**6


def audit_cache(context: GraphContext) -> CachingSection:
    """Determine whether Numba can store a function, and the obstacles otherwise.

    Notes
    -----
    For a function without a key, the key of each distinct op is computed again: O(nodes), and the
    time to generate the functions of these ops, not to compile them.
    """
    if not isinstance(context.linker, NumbaLinker) or context.function is None:
        return CachingSection(numba=False)
    is_machine_code = isinstance(context.function.vm, NativeThunk)
    if is_machine_code or python_run_of(context.function) is not None:
        # The function for Numba is not made unless it is requested.
        return CachingSection(numba=False)
    has_key, stored = has_key_and_is_stored(context.function)
    enabled = bool(config.numba__cache)
    culprits: list[CacheCulprit] = []
    if has_key or enabled:
        culprits = list(_dynamic_constants(context))
    if not has_key and enabled:
        culprits += _without_key(context, {})
    return CachingSection(True, enabled, has_key, tuple(culprits), stored)


def _graphs(context: GraphContext) -> Iterator[GraphContext]:
    """Iterate over the graphs that become functions of their own through Numba's linker."""
    yield context
    for node, inner in context.inner:
        if is_graph(node.op):
            yield from _graphs(inner)


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
    """Say why a constant enters the code as an address; None if it is embedded."""
    data = data_for_numba(constant)
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
            if is_graph(node.op):
                continue
            types = [term(variable.type) for variable in (*node.inputs, *node.outputs)]
            key = (term(node.op), *types)
            if key not in known:
                known[key] = why_no_key(node)
            why = known[key]
            if why:
                yield CacheCulprit(node, None, graph.name(node), graph.path, why)
