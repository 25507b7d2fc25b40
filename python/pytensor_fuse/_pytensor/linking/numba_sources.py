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

from pytensor_fuse._pytensor.compat.packages import package_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.type import Type

_DISPATCH: Final = "pytensor.link.numba.dispatch"

# The functions that are looked up by the class of an op, or of a constant's data.
_DISPATCHERS: Final = (
    ("basic", "numba_funcify"),
    ("basic", "numba_funcify_and_cache_key"),
    ("basic", "numba_funcify_default_op_cache_key"),
    ("basic", "numba_typify"),
    ("elemwise", "scalar_in_place_fn"),
    ("random", "numba_core_rv_funcify"),
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
    for module, name in _DISPATCHERS:
        dispatcher = getattr(sys.modules.get(f"{_DISPATCH}.{module}"), name, None)
        if dispatcher is not None:
            yield name
            for class_, rule in dispatcher.registry.items():
                yield class_
                yield rule


def are_known(rules: list[Any]) -> bool:
    """Whether versions tell what rules do, but for those of classes of others."""
    classes_and_rules = [one for one in rules if not isinstance(one, str)]
    pairs = zip(classes_and_rules[::2], classes_and_rules[1::2], strict=True)
    return all(
        _home_of_code(rule) in _KNOWN or package_of(class_.__module__) not in _USED
        for class_, rule in pairs
    )


def _home_of_code(rule: Any) -> str:
    # What a function says of itself may be what another one says that it wraps.
    return package_of(getattr(rule, "__globals__", {}).get("__name__"))


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

    late = _LateTranslation(graph)
    calling = compile_numba_function_src(source.text, source.name, late, cache_key=source.key)
    if not exists(FunctionCache(calling)._cache_file._index_path):
        return None
    if not all(type(one) is TensorType for one in types):
        import_module(_DISPATCH)
    jitted = njit(cache=True)(calling)
    _translate_when_compiled(jitted, late)
    return jitted


class _LateTranslation(dict[str, Any]):
    """The globals of a source whose graph is translated when somebody first asks for one.

    Parameters
    ----------
    graph
        Returns the graph.
    """

    def __init__(self, graph: Callable[[], FunctionGraph]) -> None:
        super().__init__(__name__=f"{_DISPATCH}.basic")
        self._graph = graph
        self._translated: Any = None
        self._settings = _settings()

    def __missing__(self, name: str) -> Any:
        # Built-in functions are looked up here before they are found.
        if name.startswith("__"):
            raise KeyError(name)
        found = self.translated().py_func.__globals__
        if found is self or name not in found:
            raise KeyError(name)
        return found[name]

    def translated(self) -> Any:
        """Return what PyTensor would have made of the graph for Numba when it was linked."""
        if self._translated is None:
            with config.change_flags(**self._settings):
                run, *_ = NumbaLinker().accept(self._graph()).make_all()
            self._translated = run.jit_fn
        return self._translated


def _settings() -> dict[str, Any]:
    return {name: getattr(config, name) for name in config._config_var_dict if _is_numbas(name)}


def _is_numbas(name: str) -> bool:
    return name.startswith("numba__")


def _translate_when_compiled(jitted: Any, late: _LateTranslation) -> None:
    from numba.core.caching import FunctionCache
    from pytensor.link.numba.cache import CACHED_SRC_FUNCTIONS

    stock_load: Any = FunctionCache.load_overload

    class TranslatingCache(FunctionCache):
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            found = stock_load(self, sig, target_context)
            if found is None and jitted._cache is self:
                # Numba holds its lock, and asks for compiler and cache after this.
                translated = late.translated()
                if translated.py_func not in CACHED_SRC_FUNCTIONS:
                    translated = _calling(translated)
                jitted._compiler = translated._compiler
                jitted.targetoptions = translated.targetoptions
                jitted._cache = translated._cache
            return found

    make: Any = TranslatingCache
    jitted._cache = make(jitted.py_func)


def _calling(jitted: Any) -> Any:
    """Return what calls a jitted function, with arguments that come as PyTensor's sources say."""
    from pytensor.link.numba.dispatch.basic import numba_njit

    def call(*args: Any) -> Any:
        return jitted(*args)

    return numba_njit(call, final_function=True)
