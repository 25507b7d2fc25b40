"""Switching PyTensor's registered passes, for fusion and for merging, between its own and ours.

The registered rewriters stay the same objects; their classes change. PyTensor's rewrite databases,
and every query of them that someone has kept (a `SequentialGraphRewriter`, however nested), hold
those objects, so all follow, those made before the switch as well as those made after it. One
assignment for each does it, which is atomic for other threads and for `fork`, and undoing it leaves
nothing behind: names, tags, their order and the position are never touched. Between the assignments
another thread may compile with some passes switched; it gets a correct result, since each pass of
the one kind works with the others of either kind.

There is one fusion pass, without which there would be nothing to enable. Of merging passes there
are several, most of them under names that say little, so all that are exactly of PyTensor's class
are switched, wherever in the databases they are; a pass of another class is left alone.

The alternatives fall short. `register(..., overwrite_existing=True)` does not reach kept queries,
moves the entry to the end of each of its tags (the order of which decides the order of rewriters in
a database without positions), and is several steps, between which another thread's query finds no
fusion at all. Patching `FusionOptimizer.apply` would also change rewriters that users made
themselves, and subclasses.

The switch is one per process. `enable` and `disable` set it; ``with enabled(...)`` blocks nest,
also across threads: the latest block that is still open decides, and within a block `enable` and
`disable` hold until its end.
"""

from __future__ import annotations

import copy
import threading
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

from pytensor.compile.mode import optdb
from pytensor.graph.rewriting.basic import MergeOptimizer
from pytensor.graph.rewriting.db import RewriteDatabase
from pytensor.misc.ordered_set import OrderedSet
from pytensor.tensor.rewriting.elemwise import FusionOptimizer

from pytensor_fuse._activation import startup
from pytensor_fuse._activation.rewriter import attach_merging, fuse_profiled, merge_profiled
from pytensor_fuse._errors import RegistrationError
from pytensor_fuse._forks import hold_in_forks
from pytensor_fuse._identity.exact_constants import compare_exactly
from pytensor_fuse._joins.context import JoinContext
from pytensor_fuse._joins.keep_targets import keep_write_targets
from pytensor_fuse._joins.rewriter import JoinBufferElimination, JoinsKept, ReuseAsked, TargetKnown
from pytensor_fuse._pytensor.targets import Target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.compile.mode import Mode
    from pytensor.graph.fg import FunctionGraph
    from pytensor.graph.rewriting.basic import GraphRewriter

_SEQUENCE = "elemwise_fusion"
_ENTRY = "composite_elemwise_fusion"
_JOINS = "join_buffer_elimination"
# After the destroy handler is attached, before any op is made to work in place.
_JOINS_POSITION = 49.7


class FusionRewriter(FusionOptimizer):
    """PyTensor's fusion pass, done by this package.

    It differs from its base class in what `apply` runs, and has no state of its own: an instance of
    the one can become an instance of the other.
    """

    def apply(self, fgraph: FunctionGraph) -> tuple[Any, ...]:
        """Fuse the Elemwise nodes of ``fgraph``, and return the profile of that.

        Raises
        ------
        FusionError
            If the pass failed; ``fgraph`` is then as it was, but merged if its mode merges.
        """
        return self, *fuse_profiled(fgraph, type(self).__name__)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        # A copy of the registered pass, in this process or another, is the pass registered there:
        # it follows `enable` and `disable`.
        if self is registered_rewriter():
            return registered_rewriter, ()
        return super().__reduce_ex__(protocol)


class MergeRewriter(MergeOptimizer):
    """PyTensor's merging pass, done by this package; without state, as `FusionRewriter` is."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach this package's feature for merging to ``fgraph``, unless it has one for that."""
        attach_merging(fgraph)

    def apply(self, fgraph: FunctionGraph) -> tuple[Any, ...]:
        """Merge the equal nodes and constants of ``fgraph``, and return the profile of that.

        Raises
        ------
        Exception
            Whatever a feature of ``fgraph`` raises; nothing is then half merged.
        """
        profile = merge_profiled(fgraph)
        # A feature for merging that someone else has written serves PyTensor's own pass.
        return super().apply(fgraph) if profile is None else profile  # type: ignore[no-untyped-call]

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        name = getattr(self, "name", None)
        if any(self is found for found in _merging_passes_named(name)):
            return merging_pass, (name, _merging_passes_named(name).index(self))
        return super().__reduce_ex__(protocol)


# PyTensor's databases keep a rewriter under the name of its class, and look for it there when it is
# replaced; profiles and summaries print it.
FusionRewriter.__name__ = FusionOptimizer.__name__
MergeRewriter.__name__ = MergeOptimizer.__name__


def registered_rewriter() -> object | None:
    """Return what PyTensor has registered as its fusion pass, or None."""
    # Asking a database for a name that it does not have would add the name to it.
    if _SEQUENCE not in optdb or _ENTRY not in optdb[_SEQUENCE]:
        return None
    rewriter: object = optdb[_SEQUENCE][_ENTRY]
    return rewriter


def rewriters_before_fusion(mode: Mode) -> GraphRewriter:
    """Return what ``mode`` does to a graph before it comes to the fusion pass."""
    query = copy.copy(mode._optimizer)
    query.position_cutoff = optdb.__position__[_SEQUENCE]
    rewriter: GraphRewriter = optdb.query(query)
    return rewriter


def merging_pass(name: str, number: int) -> MergeOptimizer:
    """Return the registered merging pass with this name; a new one if there is none.

    Names are unique within a database only: ``number`` says which of them it is.
    """
    found = _merging_passes_named(name)
    return found[number] if number < len(found) else MergeOptimizer()


def _merging_passes_named(name: str | None) -> list[MergeOptimizer]:
    return [found for found in _merging_passes() if found.name == name]


def _merging_passes() -> Iterator[MergeOptimizer]:
    """Find the registered merging passes that are PyTensor's own or ours."""
    pending: list[RewriteDatabase] = [optdb]
    known = {id(optdb)}
    while pending:
        # A query in another thread may add a tag.
        for rewriters in list(vars(pending.pop())["__db__"].values()):
            for rewriter in rewriters:
                if id(rewriter) in known:
                    continue
                known.add(id(rewriter))
                if isinstance(rewriter, RewriteDatabase):
                    pending.append(rewriter)
                elif type(rewriter) is MergeOptimizer or type(rewriter) is MergeRewriter:
                    yield rewriter


@dataclass(eq=False)
class _Setting:
    on: bool


# Guards the two lists below.
_lock = threading.RLock()
# The setting outside any `with enabled(...)`, then those of the open blocks. The last one decides.
_settings = [_Setting(on=False)]
# What the passes over joins, one of each for the process, tell each other.
join_context = JoinContext()
_joins: JoinsKept = JoinsKept(join_context)
_joins.name = _JOINS
_in_c = TargetKnown(join_context, Target.C)
_in_c.name = f"{_JOINS}_in_c"
_in_numba = TargetKnown(join_context, Target.NUMBA)
_in_numba.name = f"{_JOINS}_in_numba"
_reuse = ReuseAsked(join_context)
_reuse.name = "join_buffer_reuse"
# What is registered, in the order of their positions, and under which tags beside its name.
_LISTED: tuple[tuple[Any, float, tuple[str, ...]], ...] = (
    # Linkers that do not run C exclude the tag that says so, and Numba's asks for its own.
    (_in_c, _JOINS_POSITION - 0.02, (TargetKnown.__name__, "fast_run", "cxx_only")),
    (_in_numba, _JOINS_POSITION - 0.01, (TargetKnown.__name__, "numba")),
    # Nothing asks for it but a mode that includes its name.
    (_reuse, _JOINS_POSITION - 0.03, (ReuseAsked.__name__,)),
    (_joins, _JOINS_POSITION, (JoinBufferElimination.__name__, "fast_run", "inplace")),
)
# The rewriters that were registered when the passes were switched on.
_switched: list[FusionOptimizer | MergeOptimizer] = []

# Another thread must not be halfway through a switch when the process forks.
hold_in_forks(_lock)


def enable() -> None:
    """Let PyTensor fuse and merge with this package, in every mode that does so.

    Holds for `Mode` objects, models and rewriters that were made before, too. Calling it again
    changes nothing.

    Raises
    ------
    RegistrationError
        If PyTensor's fusion pass is not its own, because another package has replaced or removed
        it. Nothing is changed.
    """
    with _lock:
        _find_stock()
        _settings[-1].on = True
        _switch()


def disable() -> None:
    """Give PyTensor its own passes back, exactly as they were.

    Holds for `Mode` objects, models and rewriters that were made before, too. Calling it again
    changes nothing.
    """
    with _lock:
        _settings[-1].on = False
        _switch()


def is_enabled() -> bool:
    """Whether PyTensor fuses and merges with this package."""
    return type(registered_rewriter()) is FusionRewriter


@contextmanager
def enabled(flag: bool = True) -> Iterator[None]:
    """Switch the passes on (or off, if ``flag`` is false) for a block or a function.

    The state before is restored at the end, also after an exception. The switch is one for the
    whole process: other threads see it.

    Raises
    ------
    RegistrationError
        As `enable` does.

    Examples
    --------
    >>> import pytensor_fuse
    >>> with pytensor_fuse.enabled(False):
    ...     pytensor_fuse.is_enabled()
    False
    """
    setting = _Setting(bool(flag))
    with _lock:
        if setting.on:
            _find_stock()
        _settings.append(setting)
        _switch()
    try:
        yield
    finally:
        with _lock:
            # Not always the last one: blocks in different threads may overlap.
            _settings.remove(setting)
            _switch()


def settle(on: bool) -> None:
    """Switch the pass on or off where no caller could handle an error: warn instead."""
    if not on:
        disable()
        return
    try:
        enable()
    except RegistrationError as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=2)


def _find_stock() -> None:
    """Remember the registered rewriters that are PyTensor's own as those to switch."""
    rewriter: Any = registered_rewriter()
    if rewriter is None:
        raise RegistrationError(
            f"PyTensor has no fusion pass {_ENTRY!r} in its sequence {_SEQUENCE!r}, so there is "
            "nothing that pytensor_fuse could take the place of; find what removed it"
        )
    kind = type(rewriter)
    if kind is not FusionOptimizer and kind is not FusionRewriter:
        raise RegistrationError(
            f"PyTensor's fusion pass {_ENTRY!r} is a {kind.__module__}.{kind.__qualname__}, not "
            "its own: another package has replaced it. pytensor_fuse leaves it alone; to use "
            "pytensor_fuse, do without that package"
        )
    known = {id(other) for other in _switched}
    _switched.extend(r for r in (rewriter, *_merging_passes()) if id(r) not in known)


def _switch() -> None:
    """Put the setting that decides into effect."""
    on = _settings[-1].on
    for rewriter in _switched:
        if isinstance(rewriter, FusionOptimizer):
            rewriter.__class__ = FusionRewriter if on else FusionOptimizer
        else:
            rewriter.__class__ = MergeRewriter if on else MergeOptimizer
    _list_joins(on)
    compare_exactly(on)
    keep_write_targets(on)


def _list_joins(on: bool) -> None:
    """Register the pass over joins and what it needs, or remove every trace of them.

    PyTensor has no such passes, so there is no entry to change the class of. Its own `register`
    fails if a query has named the pass before, and nothing of it removes an entry. Sets and dicts
    are replaced, not changed, as another thread may be in the middle of a query. What keeps the
    pass from a query while it was on finds its class changed.
    """
    if on == (_JOINS in optdb._names):
        return
    _joins.__class__ = JoinBufferElimination if on else JoinsKept
    tags = vars(optdb)["__db__"]
    for rewriter, position, listed in _LISTED:
        name = rewriter.name
        others = {key: place for key, place in optdb.__position__.items() if key != name}
        optdb.__position__ = {**others, name: position} if on else others
        optdb._names = optdb._names | {name} if on else optdb._names - {name}
        for key in (name, *listed):
            rewriters = OrderedSet(other for other in tags.get(key, ()) if other is not rewriter)
            if on:
                rewriters.add(rewriter)
            if rewriters:
                tags[key] = rewriters
            else:
                del tags[key]


settle(startup.wanted())
