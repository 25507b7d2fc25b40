"""Graphs that are linked as they are: equal ones share their C code.

An op that runs an inner function has rewritten its graph when it was made, and links it for each
function that it is in. Nothing of that is in the cache, for nothing is rewritten; but finding the
code of the nodes anew takes most of the time of compiling a function with such an op again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor.link.vm import VMLinker

from pytensor_fuse._cache.foreign import expect_told
from pytensor_fuse._cache.loaded import expect_code
from pytensor_fuse._cache.origins import Origins
from pytensor_fuse._errors import FreezeError
from pytensor_fuse._identity.terms import intern_graph
from pytensor_fuse._pytensor.surroundings import NotToldError

if TYPE_CHECKING:
    from pytensor.compile.mode import Mode
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._cache.loaded import Loaded
    from pytensor_fuse._core import Term

# So many graphs are remembered; the first ones go first.
_MOST: Final = 256


class _Alike:
    """What stands for all graphs of a term."""

    def __init__(self, kept_as: bytes | None) -> None:
        self.loaded: Loaded | None = None
        self.kept_as = kept_as


_alike: Final[dict[Term, _Alike]] = {}


def expect_code_of(fgraph: FunctionGraph, mode: Mode, *, on_disk: bool) -> None:
    """Let the nodes of a graph that is linked as it is share their code with those of equal graphs.

    Parameters
    ----------
    fgraph
        The graph, as it will be linked.
    mode
        The mode.
    on_disk
        Whether other processes are to find the code.

    Raises
    ------
    Exception
        If what an op of somebody's says of itself fails.
    """
    if type(mode.linker) is not VMLinker:
        return
    try:
        graph = intern_graph(fgraph.inputs, fgraph.outputs, fold=False)
        origins = Origins(fgraph.inputs, fgraph.outputs)
        # Ops that keep what they compiled are the graph's own.
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
