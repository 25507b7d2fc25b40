"""The inputs of a compilation besides its graph: mode, rewriters, registries and settings.

Each is described by its parts: values that can be compared, and objects that are compared by
identity.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from pytensor.compile.mode import Mode, optdb
from pytensor.configdefaults import config
from pytensor.graph.rewriting.basic import SequentialGraphRewriter
from pytensor.graph.rewriting.db import RewriteDatabase, RewriteDatabaseQuery
from pytensor.link.basic import PerformLinker
from pytensor.link.c.basic import CLinker, OpWiseCLinker
from pytensor.link.numba.linker import NumbaLinker
from pytensor.link.vm import VMLinker
from pytensor.misc.ordered_set import OrderedSet

from pytensor_fuse._pytensor.compat.packages import is_pytensors
from pytensor_fuse._pytensor.ops.underlying_constants import search_imports_sparse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Linkers whose functions are known to depend only on the parts listed here.
_LINKERS: Final = (PerformLinker, CLinker, OpWiseCLinker, VMLinker, NumbaLinker)

# Attributes that a linker has only once it has a graph, after rewriting.
_OF_GRAPHS: Final = frozenset({"fgraph", "no_recycling", "profile", "updated_vars"})

# Settings that do not change a rewritten graph: where files are, how they are protected, how C code
# is compiled, what is printed, profiles, settings of other modes, and settings that a mode states
# itself.
IRRELEVANT_SETTINGS: Final = frozenset(
    {
        *("base_compiledir", "compiledir", "compiledir_format", "generated_src_dir", "nocleanup"),
        *("compile__timeout", "compile__wait", "cmodule__age_thresh_use", "cmodule__debug"),
        *("cmodule__preload_cache", "cmodule__compilation_warning", "cmodule__remove_gxx_opt"),
        *("cmodule__warn_no_version", "gcc__cxxflags", "gcc_version_str"),
        *("compiler_verbose", "exception_verbosity", "print_global_stats"),
        *("traceback__compile_limit", "traceback__limit"),
        *("linker", "mode", "on_unused_input", "optimizer", "unpickle_function"),
    }
)
_IRRELEVANT_GROUPS: Final = ("DebugMode__", "NanGuardMode__", "profiling__")

# Settings under which rewriting itself is observed, so it must not be skipped.
_WATCHED: Final = ("optimizer_verbose", "profile", "profile_optimizer", "profile_memory")

# Tables of PyTensor's assumptions, which users extend. A table that does not exist, in this version
# or yet, is empty.
_TABLES: Final = (
    *("ASSUMPTION_INFER_REGISTRY", "KEY_REGISTRY", "UNIVERSAL_RULES", "IMPLIES"),
    *("CONSTANT_INFER_REGISTRY", "CLIENT_INFER_REGISTRY"),
)
# The dispatcher by which the rewriting of graphs is extended.
_DISPATCHER: Final = "_vectorize_node"

# Attributes of rewriters: those that users may extend later, and those that our own rewriters
# decide by.
_DECIDED_BY: Final = ("external_simplifiers", "decides_by")

# Attributes that rewriters derive from the ops they track, when they are created.
FOLLOWS_FROM_TRACKS: Final = frozenset(
    {"_tracked_ops", "_tracked_types", "_tracked_op_patterns", "_tracked_op_pattern_types"}
)

# Stands for a value that PyTensor has not determined yet.
TO_BE_FOUND_OUT: Final = "to be found out"


class NotToldError(Exception):
    """An object has no parts that distinguish it from others; the message names it."""


def load_registering(mode: Mode, needs_numba: Callable[[], bool]) -> None:
    """Load the modules that register rewriters at the first compilation, whatever the graph.

    Otherwise other rewriters would be registered for later graphs.

    Parameters
    ----------
    mode
        The mode.
    needs_numba
        Called for Numba's linker only, as it may be slow: whether that linker needs Numba for the
        graph.
    """
    translates = type(mode.linker) is NumbaLinker and needs_numba()
    if translates:
        import_module("pytensor.typed_list")
    if translates or search_imports_sparse():
        import_module("pytensor.sparse")


def mode_parts(mode: Mode) -> tuple[Any, ...]:
    """Return the parts that distinguish a mode from modes that compile differently.

    Raises
    ------
    NotToldError
        If it has a class of its own, queries another database, or has a linker or rewriters of
        unknown content.
    """
    if type(mode) is not Mode:
        raise NotToldError(f"the mode is a {type(mode).__name__}")
    database: Any = getattr(mode, "optdb", None)
    if database is not optdb:
        raise NotToldError("the mode has its own database")
    query = mode._optimizer
    if type(query) is not RewriteDatabaseQuery:
        raise NotToldError(f"the mode's rewriter is a {type(query).__name__}, not a query")
    return (*_linker_parts(mode.linker), *_query_parts(query))


def rewrites_nothing(mode: Mode) -> bool:
    """Whether a mode links a graph as it is, as PyTensor's ops do that hold a rewritten graph."""
    rewriter: Any = mode._optimizer
    return type(mode) is Mode and type(rewriter) is SequentialGraphRewriter and len(rewriter) == 0


def _linker_parts(linker: Any) -> tuple[Any, ...]:
    if type(linker) not in _LINKERS:
        raise NotToldError(f"the linker is a {type(linker).__name__}")
    parts: list[Any] = [("linker", type(linker).__name__)]
    for name, value in sorted(vars(linker).items()):
        if name in _OF_GRAPHS:
            continue
        if name == "_scheduler" or name == "schedule":
            if value is not None and not is_pytensors(value):
                raise NotToldError("the linker has its own scheduler")
            value = getattr(value, "__qualname__", None)
        if isinstance(value, tuple | frozenset) and all(isinstance(one, str) for one in value):
            value = tuple(sorted(value))
        elif not isinstance(value, bool | int | str | None):
            raise NotToldError(f"the linker's {name} is a {type(value).__name__}")
        parts.append((f"linker.{name}", value))
    return tuple(parts)


def _query_parts(query: RewriteDatabaseQuery, within: str = "rewrites") -> tuple[Any, ...]:
    if query.extra_rewrites:
        raise NotToldError("the mode has extra rewriters")
    parts: list[Any] = [
        # In order: a database without positions runs rewriters in the order of the tags.
        (f"{within}.include", tuple(query.include)),
        (f"{within}.require", tuple(query.require)),
        (f"{within}.exclude", tuple(sorted(map(str, query.exclude)))),
        (f"{within}.position_cutoff", float(query.position_cutoff)),
    ]
    for name, inner in sorted(query.subquery.items()):
        parts += _query_parts(inner, f"{within}.{name}")
    return tuple(parts)


def settings() -> tuple[tuple[str, Any], ...]:
    """Return PyTensor's settings, except those that cannot matter.

    Raises
    ------
    NotToldError
        If one of them makes rewriting observable.
    """
    told = []
    for name, parameter in config._config_var_dict.items():
        value = _setting(name, parameter)
        if value and name in _WATCHED:
            raise NotToldError(f"config.{name} is set")
        if name not in IRRELEVANT_SETTINGS and not name.startswith(_IRRELEVANT_GROUPS):
            told.append((name, _told(value)))
    return tuple(told)


def setting_as_told(name: str) -> Any:
    """Return the value of a setting in the form that `settings` returns."""
    return _told(setting_now(name))


def _told(value: Any) -> bool | int | float | str:
    return value if isinstance(value, bool | int | float) else str(value)


def setting_now(name: str) -> Any:
    """Return the value of a setting; a placeholder if PyTensor would have to determine it first."""
    return _setting(name, config._config_var_dict[name])


def _setting(name: str, parameter: Any) -> Any:
    """Return the value of a setting; a placeholder if PyTensor would have to determine it first.

    PyTensor looks for a BLAS, for example, on first use. The search takes as long as compiling a
    model, and warns if there is none.
    """
    if not hasattr(parameter, "val") and callable(parameter.default):
        try:
            return f"given: {config.fetch_val_for_key(name)}"
        except KeyError:
            return TO_BE_FOUND_OUT
    return parameter.__get__(config, type(config))


def registered() -> list[Any]:
    """Return all registrations, in order: texts and positions, and objects as they are.

    They are the contents of `optdb` and all databases in it, each rewriter with its class, because
    switching a feature changes that; and of the tables of rules that rewriters and linkers use. Two
    lists describe the same registrations if all their items are identical or equal.
    """
    return [*_databases(), *_tables()]


class Watch:
    """Detects changes of registrations in about 0.3 ms, a tenth of the time of `registered`.

    It reads the same attributes as `registered`, in the order in which they are stored.
    """

    def __init__(self) -> None:
        self._databases: list[RewriteDatabase] = [optdb]
        known = {id(optdb)}
        for database in self._databases:
            inner = [one for rewriters in list(_tagged(database).values()) for one in rewriters]
            for one in (*inner, *_asked_by(database)):
                if isinstance(one, RewriteDatabase) and id(one) not in known:
                    known.add(id(one))
                    self._databases.append(one)
        self._named = self._by_tags()
        # Each rewriter once, by identity.
        rewriters = {id(one): one for one in self._named if not isinstance(one, str)}
        self._rewriters = list(rewriters.values())
        # A rewriter that decides by an attribute has it from the start.
        self._deciding = [
            (one, name) for name in _DECIDED_BY for one in self._rewriters if hasattr(one, name)
        ]
        self._others = self._all_else()

    def is_unchanged(self) -> bool:
        """Whether nothing has changed since; False if unknown."""
        # Lists compare items by identity first; no registered object is equal to another.
        try:
            return self._by_tags() == self._named and self._all_else() == self._others
        except Exception:  # Another thread may be registering, and a foreign comparison may fail.
            return False

    def _by_tags(self) -> list[Any]:
        """Return the rewriters of each tag, after the tag; tags are the only strings."""
        found: list[Any] = []
        for database in self._databases:
            found += _asked_by(database)
            for tag, rewriters in _tagged(database).items():
                found.append(tag)
                found += rewriters.values if type(rewriters) is OrderedSet else rewriters
        return found

    def _all_else(self) -> list[Any]:
        """Return everything else, provided that the rewriters are unchanged."""
        found: list[Any] = [vars(one).get("__position__", {}).copy() for one in self._databases]
        found += map(type, self._databases)
        found += map(type, self._rewriters)
        for one, name in self._deciding:
            _add_items(getattr(one, name, None), found)
        found += _tables()
        return found


def _databases() -> Iterator[Any]:
    pending: list[RewriteDatabase] = [optdb]
    known = {id(optdb)}
    while pending:
        database = pending.pop()
        attributes = vars(database)
        yield type(database)
        # Only sequences have positions, and run rewriters by position and then by name; in other
        # databases the order in which rewriters came to a tag matters.
        positions = attributes.get("__position__")
        for pair in sorted((positions or {}).items()):
            yield from pair
        for inner in _asked_by(database):
            yield inner
            if id(inner) not in known:
                known.add(id(inner))
                pending.append(inner)
        # A query in another thread may add a tag.
        for tag, rewriters in sorted(_tagged(database).items(), key=_tag):
            if not rewriters:
                # Querying a tag creates an empty one.
                continue
            yield tag
            for rewriter in rewriters if positions is None else sorted(rewriters, key=_name):
                yield rewriter
                yield type(rewriter)
                for name in _DECIDED_BY:
                    yield from _items(getattr(rewriter, name, None))
                if id(rewriter) not in known:
                    known.add(id(rewriter))
                    if isinstance(rewriter, RewriteDatabase):
                        pending.append(rewriter)


def _tagged(database: RewriteDatabase) -> dict[str, Any]:
    found: dict[str, Any] = vars(database).get("__db__", {})
    return found


def _asked_by(database: RewriteDatabase) -> list[RewriteDatabase]:
    """Return the databases to which a database delegates queries, which are registered nowhere."""
    return [one for one in vars(database).values() if isinstance(one, RewriteDatabase)]


def _name(rewriter: Any) -> str:
    return str(rewriter.name)


def _tag(entry: tuple[Any, Any]) -> str:
    return str(entry[0])


def _tables() -> Iterator[Any]:
    module = sys.modules.get("pytensor.assumptions.core")
    for name in _TABLES:
        yield name
        yield from _items(getattr(module, name, None))
    dispatcher = getattr(sys.modules.get("pytensor.graph.replace"), _DISPATCHER, None)
    if (rules := getattr(dispatcher, "registry", None)) is not None:
        yield _DISPATCHER
        # A dispatch table: classes, and a function for each.
        for class_, rule in rules.items():
            yield class_
            yield rule


_SEQUENCES: Final = (list, tuple)


def _items(value: Any) -> list[Any]:
    found: list[Any] = []
    _add_items(value, found)
    return found


def _add_items(value: Any, found: list[Any]) -> None:
    # Checked first, as each compilation looks at hundreds of rules and their classes.
    if type(value) is FunctionType or isinstance(value, type):
        found.append(value)
    elif isinstance(value, _SEQUENCES):
        for inner in value:
            _add_items(inner, found)
    elif hasattr(value, "items"):
        for key, inner in value.items():
            _add_items(key, found)
            _add_items(inner, found)
    elif value is not None:
        found.append(value)
