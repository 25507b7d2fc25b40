"""The cache of compiled Numba functions: keys, and functions that can be stored.

Numba is imported only on demand: the import takes seconds, and functions that it has not compiled
do not need it.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from pytensor_fuse._pytensor.graphs.inner_graphs import GRAPH_OPS

if TYPE_CHECKING:
    from pytensor.compile.executor import Function
    from pytensor.graph.basic import Apply, Constant
    from pytensor.graph.op import Op


def has_key_and_is_stored(function: Function) -> tuple[bool, bool | None]:
    """Return whether a function has a key, and whether its compiled code could be stored.

    The second is None if nothing has been compiled yet.
    """
    from pytensor.link.numba.cache import CACHED_SRC_FUNCTIONS

    compiled: Any = getattr(function.vm, "jit_fn", None)
    # With its compiler disabled, Numba returns the Python function.
    source = getattr(compiled, "py_func", None)
    has_key = source is not None and source in CACHED_SRC_FUNCTIONS
    results = list(getattr(compiled, "overloads", {}).values())
    if not results:
        return has_key, None
    return has_key, has_key and not any(_has_addresses(result) for result in results)


def _has_addresses(result: Any) -> bool:
    return bool(result.library.has_dynamic_globals or any(not x.can_cache for x in result.lifted))


def is_graph(op: Op) -> bool:
    """Whether Numba's function for ``op`` is compiled from its inner graph."""
    from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key as dispatcher

    generic = [dispatcher.dispatch(class_) for class_ in GRAPH_OPS]
    return dispatcher.dispatch(type(op)) in generic


def data_for_numba(constant: Constant[Any]) -> Any:
    """Return Numba's value for a constant: some versions make an array contiguous."""
    from pytensor.link.numba.dispatch.basic import numba_typify

    return numba_typify(constant.data, variable=constant)


def why_no_key(node: Apply[Any]) -> str | None:
    """Say why the op of ``node`` has no key; None if it has one."""
    from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            key = numba_funcify_and_cache_key(node.op, node=node)[1]
        except Exception as error:  # An implementation of another package may raise any exception.
            return f"its key cannot be computed: {type(error).__name__}: {error}"
    if key is not None:
        return None
    if any("object mode" in str(warning.message) for warning in said):
        return "Numba has no implementation of it and calls back to Python"
    return "its implementation for Numba gives no key"
