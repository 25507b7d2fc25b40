"""Requests: cache keys with everything that the rewriting of a graph depends on."""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from pytensor.compile.sharedvalue import SharedVariable

from pytensor_fuse._cache.key.cacheability import expect_told, lies_as_usual
from pytensor_fuse._cache.key.environment import features, registrations, versions
from pytensor_fuse._cache.key.without_numba import needs_numba
from pytensor_fuse._errors import FreezeError
from pytensor_fuse._fusion import effort
from pytensor_fuse._identity.names import import_name
from pytensor_fuse._identity.terms import intern_outline
from pytensor_fuse._pytensor.graphs.contents import foreign_feature
from pytensor_fuse._pytensor.rewriting.environment import (
    TO_BE_FOUND_OUT,
    NotToldError,
    load_registering,
    mode_parts,
    setting_as_told,
    settings,
)
from pytensor_fuse._pytensor.rewriting.failures import failures_are_told

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytensor.compile.io import SymbolicInput, SymbolicOutput
    from pytensor.compile.mode import Mode
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._cache.key.environment import Registrations
    from pytensor_fuse._cache.key.places import Origins
    from pytensor_fuse._identity.interning import InternedGraph

_VERSION: Final = b"pytensor-fuse rewritten graph 1 "

# The prefix of PyTensor's settings among the parts of a request.
_SETTING: Final = "config."


class Request:
    """Everything that the rewriting of a graph depends on.

    Requests can be compared and hashed, and are equal only if PyTensor's results would be equal.

    Attributes
    ----------
    graph
        The graph with all its nodes, including equal ones.
    parts
        All other parts, with readable names: roles, the mode, settings, features.
    registrations
        The registrations with PyTensor.
    """

    __slots__ = ("_hash", "_key", "graph", "parts", "registrations")

    def __init__(
        self, graph: InternedGraph, parts: tuple[tuple[str, Any], ...], registered: Registrations
    ) -> None:
        self.graph = graph
        self.parts = parts
        self.registrations = registered
        self._key = (graph.root, id(registered), parts)
        self._hash = hash(self._key)

    def once_found_out(self) -> Request:
        """Return the same request with the settings that PyTensor has determined since.

        PyTensor determines an unset setting when the first graph is compiled that needs it.
        """
        found = {name: setting_as_told(name.removeprefix(_SETTING)) for name in self._sought()}
        if all(value == TO_BE_FOUND_OUT for value in found.values()):
            return self
        parts = tuple((name, found.get(name, value)) for name, value in self.parts)
        return Request(self.graph, parts, self.registrations)

    @property
    def is_found_out(self) -> bool:
        """Whether PyTensor has determined all settings that it may have to determine."""
        return not self._sought()

    def _sought(self) -> list[str]:
        return [name for name, value in self.parts if value == TO_BE_FOUND_OUT]

    def outline(self, origins: Origins, places: Sequence[Sequence[int]]) -> Request:
        """Return the same request of a graph whose large constants may have any data.

        Parameters
        ----------
        origins
            The graph.
        places
            The places of its large constants, grouped by content.
        """
        number_of = {
            id(origins.constants[place]): number
            for number, same in enumerate(places)
            for place in same
        }
        graph = intern_outline(self.graph, number_of)
        return Request(graph, self.parts, self.registrations)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Request) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def digest(self) -> bytes:
        """Return a digest that identifies the request in every process of this machine.

        Raises
        ------
        NotToldError
            If part of it is known to this process alone; the message names the part.
        """
        root = self.graph.root.digest
        if root is None:
            raise NotToldError("part of the graph is known to this process alone")
        if self.registrations.digest is None:
            culprit = self.registrations.culprit
            raise NotToldError(f"others registered what no version tells: {culprit}")
        made = blake2b(_VERSION + root + self.registrations.digest, digest_size=32)
        for name, value in (*self.parts, *versions()):
            made.update(f"{name}={_text(value)};".encode("utf-8", "surrogatepass"))
        return made.digest()


def request_for(
    inputs: Sequence[SymbolicInput],
    outputs: Sequence[SymbolicOutput],
    fgraph: FunctionGraph,
    origins: Origins,
    mode: Mode,
    profile: object,
    graph: InternedGraph | None = None,
) -> Request:
    """Describe the rewriting of a graph that is about to begin; O(nodes + edges).

    Parameters
    ----------
    inputs, outputs
        Their roles; the outputs include updates.
    fgraph
        The graph, with the features that a function's maker has attached to it.
    origins
        Its nodes and variables.
    mode
        The mode.
    profile
        The profile of the compilation, if there is one.
    graph
        The term of the graph, if it is known.

    Raises
    ------
    NotToldError
        If rewriting may depend on something that a key cannot contain; the message names it.
    """
    if profile:
        raise NotToldError("the compilation is profiled")
    if not failures_are_told():
        raise NotToldError("failures of rewriters would not be recorded")
    foreign = foreign_feature(fgraph)
    if foreign is not None:
        raise NotToldError(f"the graph comes with a {foreign}")
    load_registering(mode, lambda: needs_numba(fgraph))
    parts: list[tuple[str, Any]] = [
        *((f"mode.{name}", value) for name, value in mode_parts(mode)),
        *((_SETTING + name, value) for name, value in settings()),
        ("features", features()),
        ("effort", os.environ.get(effort.VARIABLE, "").strip().lower()),
        ("updates", tuple(sorted((fgraph.update_mapping or {}).items()))),
    ]
    parts += [(f"input {index}", _input_role(spec)) for index, spec in enumerate(inputs)]
    parts += [(f"output {index}", bool(spec.borrow)) for index, spec in enumerate(outputs)]
    if graph is None:
        try:
            graph = origins.interned()
        except FreezeError as error:
            raise NotToldError(str(error)) from error
    expect_told(origins, graph, runs_inner=runs_inner_graphs(mode))
    # The names themselves do not matter, but which variables have one, or share one, does:
    # rewriters pass them on.
    parts.append(("which variables have names", origins.same_names()))
    parts.append(("classes of constants", tuple([type(one) for one in graph.constants])))
    parts += _layouts(graph)
    return Request(graph, tuple(parts), registrations())


def runs_inner_graphs(mode: Mode) -> bool:
    """Whether ops with inner graphs compile these themselves, and store the functions."""
    return type(mode.linker).__name__ != "NumbaLinker"


def _input_role(spec: SymbolicInput) -> tuple[Any, ...]:
    variable = spec.variable
    return (
        bool(spec.mutable),
        bool(getattr(spec, "borrow", False)),
        bool(getattr(spec, "shared", False)),
        bool(spec.implicit),
        # Some rewriters distinguish shared variables from others by class.
        isinstance(variable, SharedVariable),
        type(variable),
    )


def _layouts(graph: InternedGraph) -> Iterator[tuple[str, Any]]:
    """Yield the memory layouts of constants that are not contiguous and aligned.

    The values are the same, but folding and BLAS may add them up in another order, and Numba
    compiles for a layout.
    """
    for index, constant in enumerate(graph.constants):
        data = constant.data
        if not lies_as_usual(data):
            yield f"layout of constant {index}", (data.strides, data.flags.aligned)


def _text(value: Any) -> str:
    if isinstance(value, type):
        name = import_name(value)
        if name is None:
            raise NotToldError(f"no file holds {value.__qualname__}")
        return name
    if isinstance(value, tuple):
        return f"({','.join(map(_text, value))})"
    return repr(value)
