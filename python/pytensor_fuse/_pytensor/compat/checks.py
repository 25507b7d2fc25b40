"""Facts: the package's assumptions about PyTensor, and checks that they hold.

A fact names a place in PyTensor, as in ``"pytensor.graph.fg:FunctionGraph.replace"``, and a known
property of it. Facts are data: stating one imports nothing, and checking one imports its module.
"""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from types import CodeType
from typing import TYPE_CHECKING, Any, Final, Protocol

from pytensor_fuse._pytensor.compat.sources import NoSourceError, other_function, other_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


# The code that a function runs now, and its original code (`_pytensor.patching.drop_ins`).
REPLACED_CODES: Final[dict[CodeType, CodeType]] = {}


class Fact(Protocol):
    """A known property of PyTensor."""

    @property
    def place(self) -> str:
        """Return the place: a module, a colon, and a dotted path in the module."""

    def mismatch(self) -> str | None:
        """Describe the difference; None if the fact holds."""


class OtherGroundError(Exception):
    """A fact that a patch requires does not hold; the message describes the difference."""


class _Equal:
    """Equality by class and attributes.

    PyTensor's import waits while these classes are created; data classes would take longer to
    create than all facts take to check.
    """

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({parts})"


class Has(_Equal):
    """An object has an attribute.

    Attributes
    ----------
    place
        The object: a module, a class or an instance.
    name
        Name of the attribute.
    """

    def __init__(self, place: str, name: str) -> None:
        self.place = place
        self.name = name

    def mismatch(self) -> str | None:
        """Say that the attribute is missing; None if it exists."""
        return None if hasattr(find(self.place), self.name) else f"{self.place} has no {self.name}"


class Keeps(Has):
    """Instances of a class have an attribute, which the methods of the class set or read.

    Attributes
    ----------
    place
        The class.
    name
        Name of the attribute.
    """

    def mismatch(self) -> str | None:
        """Say that no method uses the attribute; None if one does."""
        kind: Any = find(self.place)
        functions = (function for base in kind.__mro__ for function in _functions(vars(base)))
        known = self.name in kind.__dict__ or any(
            self.name in names_in(function.__code__) for function in functions
        )
        return None if known else f"a {self.place} has no {self.name}"


class Takes(_Equal):
    """A function takes these parameters.

    Attributes
    ----------
    place
        The function.
    known
        Its parameters as one text, ``"self, fgraph, *args"``; several texts where versions differ.
    """

    def __init__(self, place: str, known: tuple[str, ...]) -> None:
        self.place = place
        self.known = known

    def mismatch(self) -> str | None:
        """Say which parameters the function takes; None if they are the known ones."""
        found = parameters(find(self.place))
        return None if found in self.known else f"{self.place} takes ({found})"


class TakesIfThere(Takes):
    """A function takes these parameters in the versions that have the function.

    Code that states this fact works without the function in the other versions.
    """

    def mismatch(self) -> str | None:
        """Say which parameters the function takes; None if known, or if there is no function."""
        return super().mismatch() if _is_there(self.place) else None


class Does(_Equal):
    """A function has a known source; this package replaces part of its work.

    The known sources have been reviewed (`_pytensor.compat.sources`).

    Attributes
    ----------
    place
        The function, by its qualified name. The path continues to the attribute ``fn`` of an object
        that wraps it, such as a node rewriter, or to ``fget`` of a property.
    """

    def __init__(self, place: str) -> None:
        self.place = place

    def mismatch(self) -> str | None:
        """Say that the source of the function is unknown; None if it is known."""
        module, _, path = self.place.partition(":")
        found = difference(find(self.place), module, path.removesuffix(".fn").removesuffix(".fget"))
        return None if found is None else f"{self.place} is {found}"


class DoesIfThere(Does):
    """A function has a known source in the versions that have the function.

    Code that states this fact works without the function in the other versions.
    """

    def mismatch(self) -> str | None:
        """Say that the source is unknown; None if it is known, or if there is no function."""
        return super().mismatch() if _is_there(self.place) else None


class Says(_Equal):
    """A module's file, or a class in it, has a known source.

    Attributes
    ----------
    place
        The module, or a class at its top level. Only the packages that contain the module are
        imported.
    """

    def __init__(self, place: str) -> None:
        self.place = place

    def mismatch(self) -> str | None:
        """Say that the source is unknown; None if it is known."""
        module, _, name = self.place.partition(":")
        if name:
            class_: Any = find(self.place)
            if (class_.__module__, class_.__qualname__) != (module, name):
                return f"{self.place} is another ({class_.__qualname__} of {class_.__module__})"
        found = other_text(module, name)
        return None if found is None else f"{self.place} is {found}"


def does(place: str, names: str) -> tuple[Does, ...]:
    """Return a `Does` for each function of a module or class that a text names."""
    dot = "." if ":" in place else ":"
    return tuple(Does(f"{place}{dot}{name}") for name in names.split())


def keeps(place: str, names: str) -> tuple[Keeps, ...]:
    """Return a `Keeps` for each attribute of a class that a text names."""
    return tuple(Keeps(place, name) for name in names.split())


def difference(function: object, module: str, path: str) -> str | None:
    """Say what a function is instead of the known function of a module; None if it is that one.

    Parameters
    ----------
    function
        The function; code that temporarily replaces its own does not count.
    module, path
        The place of the known function: its module, and its qualified name there.
    """
    code = plain_function(function).__code__
    return other_function(REPLACED_CODES.get(code, code), module, path)


def is_known(function: object, module: str, path: str) -> bool:
    """Whether a function is the known function of a module; False if that is unclear.

    Parameters
    ----------
    function, module, path
        As for `difference`.
    """
    try:
        return difference(function, module, path) is None
    except (KeyError, NoSourceError, OSError, TypeError):
        return False


def release() -> tuple[int, int]:
    """Return the first two numbers of PyTensor's version; a new release if they cannot be read."""
    words = re.findall(r"\d+", str(getattr(import_module("pytensor"), "__version__", "")))
    return (int(words[0]), int(words[1])) if len(words) > 1 else (99, 0)


def find(place: str) -> object:
    """Return the object at a place.

    Raises
    ------
    ImportError, AttributeError
        If there is no such place.
    """
    module, _, path = place.partition(":")
    return reduce(getattr, path.split(".") if path else (), import_module(module))


def _is_there(place: str) -> bool:
    try:
        find(place)
    except (ImportError, AttributeError):
        return False
    return True


def mismatches(facts: Iterable[Fact]) -> list[str]:
    """Describe each fact that does not hold, and why a fact cannot be checked."""
    found = []
    for fact in facts:
        try:
            mismatch = fact.mismatch()
        except AttributeError:  # The message depends on whether the module is still being imported.
            mismatch = f"{fact.place} is not there"
        except NoSourceError as error:
            mismatch = str(error)
        except Exception as error:  # An unknown object may raise any exception.
            mismatch = f"{fact.place} cannot be checked: {type(error).__name__}: {error}"
        if mismatch is not None and mismatch not in found:
            found.append(mismatch)
    return found


def parameters(function: object) -> str:
    """Return the names of the parameters of a Python function, as one text."""
    plain = plain_function(function)
    code = plain.__code__
    n_named = code.co_argcount + code.co_kwonlyargcount
    named = list(code.co_varnames[:n_named])
    rest = list(code.co_varnames[n_named:])
    if code.co_flags & 4:
        named.insert(code.co_argcount, f"*{rest.pop(0)}")
    elif code.co_kwonlyargcount:
        named.insert(code.co_argcount, "*")
    if code.co_flags & 8:
        named.append(f"**{rest.pop(0)}")
    return ", ".join(named)


def names_in(code: CodeType) -> set[str]:
    """Return the names of attributes and globals that a code object uses."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= names_in(constant)
    return names


def plain_function(function: object) -> Any:
    """Return the Python function in a method, or in a wrapper of this package."""
    function = getattr(function, "__func__", function)
    if not hasattr(function, "__code__"):
        raise TypeError(f"{function!r} is no Python function")
    # While a trace is open, PyTensor's methods are wrapped.
    while hasattr(function, "__wrapped__") and _is_ours(function):
        function = function.__wrapped__
    return function


def _is_ours(function: Any) -> bool:
    # A wrapper takes over the function's name, but its globals show where it was written.
    module: str = function.__globals__.get("__name__", "")
    return module.split(".")[0] == __name__.split(".")[0]


def _functions(attributes: Any) -> Iterator[Any]:
    for value in attributes.values():
        function = getattr(value, "fget", None) or getattr(value, "__func__", value)
        if hasattr(function, "__code__"):
            yield plain_function(function)
