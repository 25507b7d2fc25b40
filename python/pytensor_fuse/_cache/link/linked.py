"""The jitted functions of rewritten graphs, shared by all functions of a graph.

A jitted function contains nothing of the function that it was made for: its arguments and results
go through storage that belongs to each function.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from pytensor.link.numba.linker import NumbaLinker

from pytensor_fuse._cache.data.inner_constants import Contents, inner_constants
from pytensor_fuse._cache.link.stored_functions import read_function, store_function
from pytensor_fuse._cache.store import disk
from pytensor_fuse._cache.store.meanwhile import catch_up
from pytensor_fuse._cache.store.origin import origin_of
from pytensor_fuse._pytensor.linking.numba_settings import compiles, is_compiled, numba_settings
from pytensor_fuse._pytensor.linking.numba_sources import are_known, numba_rules
from pytensor_fuse._pytensor.patching.patches import ReplacedAttributes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._cache.store.entry import Entry


class _Linked(NamedTuple):
    """A jitted function, and its inputs.

    Attributes
    ----------
    rules
        The rules by which PyTensor translated the graph; empty if Numba had the code already.
    constants
        A snapshot of the graph's constants, which Numba reads when the function is first called.
        The program may write to them.
    function
        The function.
    parts
        The key of the parts of the graph that Numba does not compile; empty if there are none.
    settings
        The settings of Numba.
    """

    rules: list[Any]
    constants: Contents
    function: Any
    parts: bytes
    settings: tuple[Any, ...]

    def holds(self, rules: list[Any], parts: bytes, settings: tuple[Any, ...]) -> bool:
        """Whether the function is still valid for an equal graph."""
        are_the_same = self.rules == rules if self.rules else are_known(rules)
        are_the_same = are_the_same and self.parts == parts and self.settings == settings
        return are_the_same and self.constants.are_known() and self.constants.are_the_same()


class _Expected(NamedTuple):
    """A graph that is about to be linked.

    Attributes
    ----------
    entry
        The entry of the graph.
    variables
        Its variables, by their numbers there.
    parts
        The key of its parts that Numba does not compile.
    """

    entry: Entry
    variables: list[Variable[Any, Any]]
    parts: bytes = b""


_expected: WeakKeyDictionary[FunctionGraph, _Expected] = WeakKeyDictionary()

_stock_convert: Any = NumbaLinker.fgraph_convert
_stock_compile: Any = NumbaLinker.jit_compile


class Shared(NamedTuple):
    """The linked graph that equal graphs share.

    Attributes
    ----------
    entry
        The entry of the graph.
    contents
        The contents of its constants, and of those of its inner graphs.
    """

    entry: Entry
    contents: Contents


def shared_by(fgraph: FunctionGraph) -> Shared | None:
    """Return the shared data of a graph that is about to be linked; None if there is none."""
    expected = _expected.get(fgraph)
    if expected is None:
        return None
    return Shared(expected.entry, _contents(fgraph, expected.entry, expected.variables))


def linked_in_parts(fgraph: FunctionGraph, parts: bytes) -> None:
    """Restrict sharing of a graph's jitted function to equal graphs with equal parts.

    Parameters
    ----------
    fgraph
        The graph, which is about to be linked.
    parts
        The key of its parts that Numba does not compile.
    """
    expected = _expected.get(fgraph)
    if expected is not None:
        _expected[fgraph] = expected._replace(parts=parts)


def linked_otherwise(fgraph: FunctionGraph) -> None:
    """Forget a graph that was linked without Numba."""
    _expected.pop(fgraph, None)


def _contents(fgraph: FunctionGraph, entry: Entry, variables: list[Variable[Any, Any]]) -> Contents:
    constants = entry.rewritten.constants_among(variables)
    return Contents([*constants, *inner_constants(node.op for node in fgraph.apply_nodes)])


def expect_linking(
    fgraph: FunctionGraph, entry: Entry, variables: Iterable[Variable[Any, Any]]
) -> None:
    """Share the jitted function of a graph with all graphs of the same entry.

    Parameters
    ----------
    fgraph
        The graph.
    entry
        The entry.
    variables
        The variables of the graph, by their numbers.
    """
    origin = origin_of(fgraph)
    # A graph of another mode that is linked by Numba may have been changed before.
    if origin and origin.request and ("mode.linker", NumbaLinker.__name__) in origin.request.parts:
        _expected[fgraph] = _Expected(entry, list(variables))


class _Waiting(NamedTuple):
    """A graph that is translated but not yet jitted, with the inputs of its translation."""

    entry: Entry
    rules: list[Any]
    constants: Contents
    converted: Any
    parts: bytes
    settings: tuple[Any, ...]


def _convert(self: NumbaLinker, fgraph: FunctionGraph, **kwargs: Any) -> Any:
    catch_up()
    expected = _expected.pop(fgraph, None)
    if expected is None:
        return _stock_convert(self, fgraph, **kwargs)
    (entry, variables, parts), rules, settings = expected, numba_rules(), numba_settings()
    if isinstance(entry.linked, _Linked) and entry.linked.holds(rules, parts, settings):
        return entry.linked
    if not compiles(settings):
        return _stock_convert(self, fgraph, **kwargs)
    contents = _contents(fgraph, entry, variables)
    graph = entry.kept_as + parts if entry.kept_as and contents.are_known() else None
    if graph is not None:
        types = [one.type for one in (*fgraph.inputs, *fgraph.outputs)]
        again = entry.rewritten.graph_again(variables)
        read = partial(read_function, graph, contents, rules, settings, types, again)
        if (found := disk.tried("reading", read)) is not None:
            entry.linked = _Linked(rules, contents, found, parts, settings)
            return entry.linked
    converted = _stock_convert(self, fgraph, **kwargs)
    # Translating loads further rules.
    rules = rules or numba_rules()
    if graph is not None:
        disk.tried("writing", partial(store_function, graph, contents, rules, settings, converted))
    return _Waiting(entry, rules, contents, converted, parts, settings)


def _compile(self: NumbaLinker, converted: Any) -> Any:
    if isinstance(converted, _Linked):
        return converted.function
    if not isinstance(converted, _Waiting):
        return _stock_compile(self, converted)
    entry, rules, constants, inner, parts, settings = converted
    made = _stock_compile(self, inner)
    if is_compiled(made):
        entry.linked = _Linked(rules, constants, made, parts, settings)
    return made


def shared_conversion() -> ReplacedAttributes:
    """Return the patch that shares the translation of a graph."""
    return ReplacedAttributes([NumbaLinker], "fgraph_convert", _convert)


def shared_functions() -> ReplacedAttributes:
    """Return the patch that shares jitted functions."""
    return ReplacedAttributes([NumbaLinker], "jit_compile", _compile)
