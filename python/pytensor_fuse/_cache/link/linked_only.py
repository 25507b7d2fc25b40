"""Graphs that are linked without rewriting: equal ones share their C code.

An op that runs an inner function has rewritten its graph when it was made, and links it for each
function that contains the op. Since nothing is rewritten, the cache has no entry; but finding the
code of the nodes again takes most of the time of recompiling a function with such an op.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor.link.vm import VMLinker

from pytensor_fuse._cache.key.cacheability import expect_told
from pytensor_fuse._cache.key.places import Origins
from pytensor_fuse._cache.link.loaded import expect_code
from pytensor_fuse._errors import FreezeError
from pytensor_fuse._pytensor.rewriting.environment import NotToldError

if TYPE_CHECKING:
    from pytensor.compile.mode import Mode
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._cache.link.loaded import Loaded
    from pytensor_fuse._core import Term

# The largest number of remembered graphs; the oldest are dropped first.
_MOST: Final = 256


class _Alike:
    """The representative of all graphs of a term."""

    def __init__(self, kept_as: bytes | None) -> None:
        self.loaded: Loaded | None = None
        self.kept_as = kept_as


_alike: Final[dict[Term, _Alike]] = {}


def expect_code_of(fgraph: FunctionGraph, mode: Mode, *, on_disk: bool) -> None:
    """Share the code of the nodes of a graph that is linked without rewriting with equal graphs.

    Parameters
    ----------
    fgraph
        The graph that will be linked.
    mode
        The mode.
    on_disk
        Whether to store the code for other processes.

    Raises
    ------
    Exception
        If a method of a third-party op fails.
    """
    if type(mode.linker) is not VMLinker:
        return
    try:
        origins = Origins(fgraph.inputs, fgraph.outputs)
        graph = origins.interned()
        # Ops that store compiled functions belong to the graph alone.
        expect_told(origins, graph, runs_inner=False)
    except (FreezeError, NotToldError):
        return
    known = _alike.get(graph.root)
    if known is None:
        known = _alike.setdefault(graph.root, _Alike(graph.root.digest if on_disk else None))
        for root in list(_alike)[:-_MOST]:
            _alike.pop(root, None)
    expect_code(origins.variables, known, mode.linker)


def forget_code() -> None:
    """Forget the code of all graphs."""
    _alike.clear()
