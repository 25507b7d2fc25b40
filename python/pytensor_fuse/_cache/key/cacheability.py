"""Cacheability: graphs that a key cannot describe are rewritten each time.

Two graphs are equal if PyTensor's comparison of their parts says so. Things that it does not
compare may still affect a rewriter or the result of a node: attributes that an op does not declare
as properties, files or tables that its `perform` reads while constants are folded, notes in tags.
So a graph is cached only if the classes of its ops and types are known, and its variables have no
such notes.
"""

from __future__ import annotations

import sys
import types
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from pytensor.configdefaults import config
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.type import Type
from pytensor.misc.frozendict import frozendict
from pytensor.scalar.basic import ScalarOp
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse._pytensor.graphs.comparison import also_compared
from pytensor_fuse._pytensor.graphs.inner_graphs import (
    graphs_of_arrays,
    has_inner_graphs,
    held_ops,
    keeps_functions,
    own_graphs,
    parts_of,
)
from pytensor_fuse._pytensor.rewriting.environment import NotToldError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._cache.key.places import Origins
    from pytensor_fuse._identity.interning import InternedGraph

# Packages whose versions are known, and whose ops are determined by their compared properties.
KNOWN_PACKAGES: Final = ("pytensor", "pytensor_fuse", "pymc")
_LIBRARIES: Final = (*KNOWN_PACKAGES, "numpy", "scipy", "numba", "builtins", "math", "operator")

# Tags of nodes and variables: their origin, and PyTensor's findings about constants' data.
_HARMLESS_TAGS: Final = frozenset(
    {
        *("trace", "imported_by", "removed_by"),
        # Left by nodes that were run, for example to fold constants.
        *("ufunc", "gufunc", "fake_node", "sig"),
        # On Scan's nodes, for gradients: it follows from the op.
        "connection_pattern",
        # On random states, for a warning; on variables of PyMC.
        *("used", "transform", "observations"),
        # On Scan's buffers, for NanGuardMode, which is not cached; and findings about data.
        *("nan_guard_mode_check", "values_eq_approx"),
        *("unique_value", "unique_indices", "jointly_unique_indices", "is_arange"),
        *("is_positive", "is_non_negative", "is_permutation", "is_selection"),
        *("is_diagonal", "is_tridiagonal"),
    }
)


# Classes that are neither callable nor contain callables: those of nearly all attributes of ops,
# which are all checked in each compilation.
_PLAIN: Final = frozenset({type(None), bool, int, float, complex, str, bytes})
_MAPPINGS: Final = (dict, frozendict)
_COLLECTIONS: Final = (tuple, list, set, frozenset)


def expect_told(origins: Origins, graph: InternedGraph, *, runs_inner: bool) -> None:
    """Raise if a graph has a property that its key does not contain; O(nodes).

    Parameters
    ----------
    origins
        The nodes and variables of the graph.
    graph
        The interned graph, with each op and type once.
    runs_inner
        Whether ops with inner graphs compile these themselves, and store the functions.

    Raises
    ------
    NotToldError
        The message names the property.
    """
    for variable in origins.noted_variables:
        _expect_no_notes(variable)
    for node in origins.noted_nodes:
        _expect_no_notes(node, "a node of {0.op}")
    for type_ in {type(one): one for one in graph.types}.values():
        _expect_known_type(type_)
    for constant in graph.constants:
        _expect_known_type(constant.type)
    for op in graph.ops:
        _expect_known(op, runs_inner=runs_inner, depth=0)


def _expect_no_notes(thing: Variable[Any, Any] | Apply[Any], what: str = "{0}") -> None:
    notes = vars(thing.tag)
    if notes and not notes.keys() <= _HARMLESS_TAGS:
        names = ", ".join(sorted(notes.keys() - _HARMLESS_TAGS))
        raise NotToldError(f"{what.format(thing)} has notes in its tag: {names}")


def _expect_known_type(type_: Type[Any]) -> None:
    module = type(type_).__module__
    if module.partition(".")[0] not in KNOWN_PACKAGES:
        raise NotToldError(f"{type_} is a type of {module}")


class _Class(NamedTuple):
    """Properties of a class of ops; looked up for each op of each graph."""

    is_known: bool
    is_elemwise: bool
    is_blockwise: bool


def _class_of(class_: type) -> _Class:
    is_known = class_.__module__.split(".")[0] in KNOWN_PACKAGES
    return _Class(is_known, issubclass(class_, Elemwise), issubclass(class_, Blockwise))


_class: Callable[[type], _Class] = lru_cache(1024)(_class_of)


def _expect_known(op: Any, *, runs_inner: bool, depth: int) -> None:
    is_known, is_elemwise, is_blockwise = _class(type(op))
    if not is_known:
        raise NotToldError(f"{op} is an op of {type(op).__module__}")
    if (scalar_op := getattr(op, "scalar_op", None)) is not None:
        _expect_known(scalar_op, runs_inner=runs_inner, depth=depth)
    if is_elemwise:
        if op.nfunc_spec not in (None, getattr(scalar_op, "nfunc_spec", None)):
            raise NotToldError(f"{op} has a function of its own")
        if op.openmp != config.openmp:
            # It is not compared, but affects the code.
            raise NotToldError(f"{op} was made for another config.openmp")
        return
    if is_blockwise and op.gufunc_spec is not None:
        raise NotToldError(f"{op} has a function of its own")
    for held in held_ops(op).values():
        # Functions get copies of ops that store compiled functions, with the ops inside them.
        _expect_known(held, runs_inner=runs_inner, depth=depth)
    if has_inner_graphs(op):
        _expect_known_inside(op, runs_inner=runs_inner, depth=depth)
    else:
        _expect_known_calls(op, vars(op).values())


def _expect_known_calls(op: Op, attributes: Iterable[Any]) -> None:
    for value in attributes:
        if type(value) in _PLAIN:
            continue
        if (called := _called_of_others(value)) is not None:
            raise NotToldError(f"{op} calls {called}")


def _called_of_others(value: Any) -> str | None:
    """Return the third-party code that ``value`` calls; None if there is none."""
    if isinstance(value, _MAPPINGS):
        value = (*value, *value.values())
    if isinstance(value, _COLLECTIONS):
        for one in value:
            if type(one) not in _PLAIN and (found := _called_of_others(one)) is not None:
                return found
        return None
    if isinstance(value, partial):
        return _called_of_others((value.func, *value.args, *value.keywords.values()))
    # Ops and types have terms of their own, and exceptions are only raised.
    if not callable(value) or isinstance(value, Op | Type):
        return None
    if isinstance(value, type):
        known = value.__module__.split(".")[0] in _LIBRARIES or issubclass(value, BaseException)
        return None if known else f"the class {value.__name__} of {value.__module__}"
    if isinstance(value, np.ufunc):
        # A ufunc of a Python function claims to be NumPy's, too.
        homes = (np, sys.modules.get("scipy.special"))
        known = any(getattr(one, value.__name__, None) is value for one in homes)
        return None if known else f"the ufunc {value.__name__}"
    module = getattr(value, "__module__", None) or type(value).__module__
    if module.split(".")[0] not in _LIBRARIES:
        return f"a function of {module}"
    bound = getattr(value, "__self__", None)
    if isinstance(value, types.FunctionType) or isinstance(bound, types.ModuleType):
        return None
    # Only those objects of PyTensor that are compared by value are immutable.
    owner = type(value) if bound is None else type(bound)
    equality: Any = owner.__eq__
    if equality is object.__eq__ or owner.__module__.split(".")[0] not in KNOWN_PACKAGES:
        return f"a {owner.__qualname__} of {owner.__module__}"
    return None


def _expect_known_inside(op: Any, *, runs_inner: bool, depth: int) -> None:
    if getattr(op, "mode", None) is not None:
        raise NotToldError(f"{op} has a mode of its own")
    _expect_known_calls(op, [getattr(op, name) for name in also_compared(op)])
    if isinstance(op, ScalarOp):
        runs_inner = False
    elif runs_inner and depth:
        # All functions would share the inner op's compiled function.
        raise NotToldError(f"{op} is in an op that compiles it")
    for graph in own_graphs(op):
        if isinstance(graph, FunctionGraph):
            # In PyTensor 3.0, whose Numba linker does change it.
            raise NotToldError(f"{op} has an inner graph that may be changed")
        nodes, variables, constants = parts_of(graph)
        for type_ in {type(one.type): one.type for one in variables}.values():
            _expect_known_type(type_)
        for variable in variables:
            _expect_no_notes(variable)
        for node in nodes:
            _expect_no_notes(node, "a node of {0.op} in an inner graph")
        for constant in constants:
            if not lies_as_usual(constant.data):
                raise NotToldError(f"a constant in {op} does not lie in memory as usual")
        for inner in {id(node.op): node.op for node in nodes}.values():
            _expect_known(inner, runs_inner=runs_inner, depth=depth + 1)


def expect_nothing_shared(ops: Iterable[Op]) -> None:
    """Raise if functions would share the compiled functions of ops in inner graphs.

    Each function has its own copies of the ops of a graph, but not of those in their inner graphs.
    Rewriting makes such ops, too.

    Parameters
    ----------
    ops
        The ops of a rewritten graph.

    Raises
    ------
    NotToldError
        The message names the op.
    """
    for op in ops:
        for graph in graphs_of_arrays(op):
            for node in graph.apply_nodes:
                if keeps_functions(node.op):
                    raise NotToldError(f"{node.op} is in an op that compiles it")


def lies_as_usual(data: object) -> bool:
    """Whether an array is C-contiguous and aligned, as a new array is."""
    return not isinstance(data, np.ndarray) or (data.flags.c_contiguous and data.flags.aligned)
