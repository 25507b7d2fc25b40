"""Sources and keys of whole graphs that PyTensor passes to Numba, and compiled code on disk.

PyTensor translates a graph by making a function for each node, most of which look into a folder on
disk, and then one source that calls the function of the graph. Numba finds its earlier compilation
by that source and PyTensor's key alone, for the types of the arguments; the functions of nodes are
needed only if it has to compile.

Numba is imported only on demand.
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

# The functions that dispatch on the class of an op, or of a constant's data.
_DISPATCHERS: Final = (
    ("basic", "numba_funcify"),
    ("basic", "numba_funcify_and_cache_key"),
    ("basic", "numba_funcify_default_op_cache_key"),
    ("basic", "numba_typify"),
    ("elemwise", "scalar_in_place_fn"),
    ("random", "numba_core_rv_funcify"),
)

# Packages whose versions identify their rules.
_KNOWN: Final = ("pytensor", "pytensor_fuse")

# Packages of the ops and data in cached graphs; rules for classes of other packages do not apply to
# them.
_USED: Final = (*_KNOWN, "pymc", "numpy", "scipy", "numba", "builtins", "abc")


class Source(NamedTuple):
    """The text of the function that calls the function of a graph, its name, and its key."""

    text: str
    name: str
    key: str


def numba_rules() -> list[Any]:
    """Return the functions by which Numba's linker translates ops and data, with their classes.

    The list is empty before the first graph is translated: loading PyTensor's rules takes as long
    as all other work of finding a function that was compiled before.
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
    """Whether versions identify the rules, except rules for classes of other packages."""
    classes_and_rules = [one for one in rules if not isinstance(one, str)]
    pairs = zip(classes_and_rules[::2], classes_and_rules[1::2], strict=True)
    return all(
        _home_of_code(rule) in _KNOWN or package_of(class_.__module__) not in _USED
        for class_, rule in pairs
    )


def _home_of_code(rule: Any) -> str:
    # The attributes of a function may be those of a function that it wraps; its globals are its
    # own.
    return package_of(getattr(rule, "__globals__", {}).get("__name__"))


def source_of(converted: Any) -> Source | None:
    """Return the source of a translated graph; None if Numba does not look for it on disk."""
    from pytensor.link.numba.cache import CACHED_SRC_FUNCTIONS

    function, key = converted
    made = getattr(function, "py_func", None)
    if key is None or made is None or made.__closure__:
        return None
    text, full_key = getattr(made, "__source__", None), CACHED_SRC_FUNCTIONS.get(made)
    return None if text is None or full_key is None else Source(text, made.__name__, full_key)


def may_be_untranslated() -> bool:
    """Whether nothing inspects the translation, and Numba looks for code on disk."""
    from numba import config as settings_of_numba

    is_jitted = not vars(settings_of_numba)["DISABLE_JIT"]
    return bool(config.numba__cache and is_jitted and not config.compiler_verbose)


def without_translation(
    source: Source, types: Iterable[Type[Any]], graph: Callable[[], FunctionGraph]
) -> Any | None:
    """Return Numba's compiled code of a graph; None if nothing is on disk.

    Parameters
    ----------
    source
        The translated graph.
    types
        Types of its inputs and outputs. Numba knows arrays itself, and all other types by rules.
    graph
        Returns the graph, which is translated if Numba has no code for the types of some arguments.

    Returns
    -------
    Dispatcher or None
        The same as `NumbaLinker.jit_compile` returns.
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
    """The globals of a source; its graph is translated when one of them is first looked up.

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
        # Python looks up built-in functions here first.
        if name.startswith("__"):
            raise KeyError(name)
        found = self.translated().py_func.__globals__
        if found is self or name not in found:
            raise KeyError(name)
        return found[name]

    def translated(self) -> Any:
        """Return the function that PyTensor would have made of the graph while linking it."""
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
                # Numba holds its lock, and uses compiler and cache afterwards.
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
    """Return a caller of a jitted function that takes arguments as PyTensor's sources pass them."""
    from pytensor.link.numba.dispatch.basic import numba_njit

    def call(*args: Any) -> Any:
        return jitted(*args)

    return numba_njit(call, final_function=True)
