"""What PyTensor tells Numba of a whole graph: a source and a key, and code that may be on disk.

PyTensor translates a graph by making a function of each node, most of them with a folder on disk to
look into, and then one source that calls the function of the graph. Numba finds what it compiled of
it before by that source and PyTensor's key alone, for the types of the arguments; the functions of
nodes are needed only if it has to compile.

Numba is imported only when this is asked for.
"""

from __future__ import annotations

import sys
from importlib import import_module
from os.path import exists
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytensor.configdefaults import config
from pytensor.link.numba.linker import NumbaLinker
from pytensor.tensor.type import TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.type import Type

_BASIC: Final = "pytensor.link.numba.dispatch.basic"

# The functions that are looked up by the class of an op, or of a constant's data.
_DISPATCHERS: Final = (
    "numba_funcify",
    "numba_funcify_and_cache_key",
    "numba_funcify_default_op_cache_key",
    "numba_typify",
)

# Whose rules are told by versions.
_KNOWN: Final = ("pytensor", "pytensor_fuse")

# Of whom graphs that are kept have ops and data: to all others, no rule of theirs applies.
_USED: Final = (*_KNOWN, "pymc", "numpy", "scipy", "numba", "builtins", "abc")


class Source(NamedTuple):
    """The text of the function that calls the function of a graph, its name, and its key."""

    text: str
    name: str
    key: str


def numba_rules() -> list[Any]:
    """Return the functions by which Numba's linker translates ops and data, with their classes.

    There are none before the first graph is translated: to load PyTensor's takes as long as all
    else that it takes to find a function that was compiled before.
    """
    return list(_rules())


def _rules() -> Iterator[Any]:
    basic = sys.modules.get(_BASIC)
    for name in _DISPATCHERS:
        dispatcher = getattr(basic, name, None)
        if dispatcher is not None:
            yield name
            for class_, rule in dispatcher.registry.items():
                yield class_
                yield rule


def are_known(rules: list[Any]) -> bool:
    """Whether versions tell what rules do, but for those of classes of others."""
    classes_and_rules = [one for one in rules if not isinstance(one, str)]
    pairs = zip(classes_and_rules[::2], classes_and_rules[1::2], strict=True)
    return all(_home(rule) in _KNOWN or _home(class_) not in _USED for class_, rule in pairs)


def _home(named: Any) -> str:
    return str(named.__module__).partition(".")[0]


def source_of(converted: Any) -> Source | None:
    """Return the source of a translated graph; None if Numba looks for it nowhere on disk."""
    from pytensor.link.numba.cache import CACHED_SRC_FUNCTIONS

    function, key = converted
    made = getattr(function, "py_func", None)
    if key is None or made is None or made.__closure__:
        return None
    text, full_key = getattr(made, "__source__", None), CACHED_SRC_FUNCTIONS.get(made)
    return None if text is None or full_key is None else Source(text, made.__name__, full_key)


def may_be_untranslated() -> bool:
    """Whether nobody looks at the translation, and Numba looks for code on disk."""
    from numba import config as settings_of_numba

    is_jitted = not vars(settings_of_numba)["DISABLE_JIT"]
    return bool(config.numba__cache and is_jitted and not config.compiler_verbose)


def without_translation(
    source: Source, types: Iterable[Type[Any]], graph: Callable[[], FunctionGraph]
) -> Any | None:
    """Return what Numba compiled of a graph; None if nothing is on disk.

    Parameters
    ----------
    source
        What the graph was translated to.
    types
        Those of its inputs and outputs. Numba knows arrays by itself, and all else by rules.
    graph
        Returns the graph, to be translated if Numba has no code for the types of some arguments.

    Returns
    -------
    Dispatcher or None
        As `NumbaLinker.jit_compile` does.
    """
    from numba import njit
    from numba.core.caching import FunctionCache
    from pytensor.link.numba.cache import compile_numba_function_src

    calling = compile_numba_function_src(source.text, source.name, {}, cache_key=source.key)
    if not exists(FunctionCache(calling)._cache_file._index_path):
        return None
    if not all(type(one) is TensorType for one in types):
        import_module("pytensor.link.numba.dispatch")
    jitted = njit(cache=True)(calling)
    _translate_when_compiled(jitted, graph)
    return jitted


def _translate_when_compiled(jitted: Any, graph: Callable[[], FunctionGraph]) -> None:
    from numba.core.caching import FunctionCache, NullCache
    from pytensor.link.numba.cache import CACHED_SRC_FUNCTIONS

    stock_load: Any = FunctionCache.load_overload

    class TranslatingCache(FunctionCache):
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            found = stock_load(self, sig, target_context)
            if found is None and jitted._cache is self:
                # Numba holds its lock, and reads globals and options only when it compiles.
                translated = _translated(graph())
                mine, stock = jitted.py_func, translated.py_func
                mine.__globals__.update(stock.__globals__)
                jitted.targetoptions.clear()
                jitted.targetoptions.update(translated.targetoptions)
                same = CACHED_SRC_FUNCTIONS.get(stock) == CACHED_SRC_FUNCTIONS.get(mine)
                jitted._cache = FunctionCache(mine) if same else NullCache()
            return found

    make: Any = TranslatingCache
    jitted._cache = make(jitted.py_func)


def _translated(fgraph: FunctionGraph) -> Any:
    """Return what PyTensor makes of a graph for Numba."""
    run, *_ = NumbaLinker().accept(fgraph).make_all()
    return run.jit_fn
