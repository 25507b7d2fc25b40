"""The digest of the registrations with PyTensor, which is the same in all processes.

Nearly all of the thousands of rewriters, classes and functions belong to packages whose versions
are part of the key, so that their names identify them. Rewriters that users make from PyTensor's
classes, for example from patterns, are identified by all of their attributes.
"""

from __future__ import annotations

from abc import ABCMeta
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from types import FunctionType, UnionType
from typing import Any, Final, TypeAlias

from pytensor.graph.basic import Constant
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import Rewriter
from pytensor.graph.utils import MetaType

from pytensor_fuse._cache.key.cacheability import KNOWN_PACKAGES
from pytensor_fuse._identity.terms import constant_term, term
from pytensor_fuse._pytensor.rewriting.environment import FOLLOWS_FROM_TRACKS, NotToldError

# Modules of Python itself to which classes and functions may belong.
_STANDARD: Final = ("builtins", "abc", "enum", "functools", "operator", "types")

# The packages of the parts of rewriters' patterns.
_PATTERNS: Final = ("etuples", "unification")

# Packages whose versions determine the contents of their files.
_VERSIONED: Final = frozenset(
    (*KNOWN_PACKAGES, "numpy", "scipy", "numba", "llvmlite", *_PATTERNS, *_STANDARD)
)

# The depth to which rewriters and their patterns, which may hold third-party functions, are read.
_DEPTH: Final = 12


def registration_digest(items: list[Any]) -> tuple[bytes | None, str]:
    """Return a digest of registrations, the same in every process; linear in their attributes.

    Parameters
    ----------
    items
        The registered objects, in order.

    Returns
    -------
    digest : bytes or None
        16 bytes; None if something is known to this process alone.
    culprit : str
        Its name, and the reason.
    """
    # Most items are registered several times, and some descriptions take pages. Equal texts have
    # the same number, because equal items may be one object in one process and two in another.
    number_of_item: dict[int, int] = {}
    number_of_text: dict[str, int] = {}
    order = array("I")
    for item in items:
        number = number_of_item.get(id(item))
        if number is None:
            try:
                text = _told(item, _DEPTH)
            except NotToldError as error:
                return None, f"{item}: {error}"
            number = number_of_text.setdefault(text, len(number_of_text))
            number_of_item[id(item)] = number
        order.append(number)
    made = blake2b(
        "".join([f"{len(text)}:{text}" for text in number_of_text]).encode(), digest_size=16
    )
    made.update(order.tobytes())
    return made.digest(), ""


def _told(item: Any, depth: int) -> str:
    """Return a text that identifies a registered object in every process.

    Functions and classes of known packages are described by name, since the packages' versions are
    part of the key; rewriters by their class and all attributes, such as patterns.

    Raises
    ------
    NotToldError
        If part of it belongs to another package, whose code may have changed since it was imported.
    """
    # Dispatch by exact class, because each process describes thousands of objects.
    told: _Told | None = _TOLD.get(type(item))
    return _told_by_parts(item, depth) if told is None else told(item, depth)


def _told_sequence(items: Sequence[Any], depth: int) -> str:
    return f"({','.join([_told(part, depth - 1) for part in items])})"


def _told_set(items: set[Any] | frozenset[Any], depth: int) -> str:
    return f"<{','.join(sorted([_told(part, depth - 1) for part in items]))}>"


def _told_dict(items: dict[Any, Any], depth: int) -> str:
    pairs = [f"{key!s}:{_told(value, depth - 1)}" for key, value in items.items()]
    return f"{{{','.join(sorted(pairs))}}}"


def _told_name(home: Any, depth: int) -> str:
    """Return the name of a class or a function."""
    module = getattr(home, "__module__", None) or ""
    if module.partition(".")[0] not in _VERSIONED:
        raise NotToldError(f"{home!r} is of {module}")
    return f"{module}:{home.__qualname__}"


def _told_by_parts(item: Any, depth: int) -> str:
    bases = type(item).__mro__
    for base in bases:
        if (told := _TOLD.get(base)) is not None:
            return told(item, depth)
    if Op in bases or Constant in bases:
        digest = (term(item) if Op in bases else constant_term(item)).digest
        if digest is None:
            raise NotToldError(f"{item} is known to this process alone")
        return digest.hex()
    # Sequences of rewriters also have attributes about their last run.
    if isinstance(item, Sequence):
        return _told_sequence(item, depth)
    # The module of a bound method is that of its function.
    if hasattr(item, "__qualname__"):
        return _told_name(item, depth)
    name = _told_name(type(item), depth)
    module = type(item).__module__.split(".")
    if module[0] not in (*KNOWN_PACKAGES, *_PATTERNS):
        raise NotToldError(f"nothing tells one {name} from another")
    if depth and (Rewriter in bases or module[-1] == "unify"):
        return f"{name} {_told_dict(_attributes(item), depth - 1)}"
    return name


_Told: TypeAlias = Callable[[Any, int], str]
_TOLD: Final[Mapping[type, _Told]] = {
    **dict.fromkeys((type(None), str, int, float, bool), lambda item, _: repr(item)),
    **dict.fromkeys((tuple, list), _told_sequence),
    **dict.fromkeys((set, frozenset), _told_set),
    dict: _told_dict,
    UnionType: lambda item, depth: _told(item.__args__, depth - 1),
    partial: lambda item, depth: (
        f"partial {_told((item.func, item.args, item.keywords), depth - 1)}"
    ),
    **dict.fromkeys((type, ABCMeta, MetaType, FunctionType), _told_name),
}


def _attributes(item: Any) -> dict[str, Any]:
    if hasattr(item, "__dict__"):
        own = vars(item)
        return {name: own[name] for name in own if name not in FOLLOWS_FROM_TRACKS}
    return {name: getattr(item, name, None) for name in type(item).__slots__}
