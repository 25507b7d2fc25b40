"""Traces: which passes and rewriters ran for a compiled function, what they did, and how long."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pytensor
from pytensor.graph.rewriting.basic import SequentialGraphRewriter

from pytensor_fuse._core import __version__
from pytensor_fuse._trace import hooks
from pytensor_fuse._trace.records import (
    PassTotal,
    RewriterTotal,
    TracedCall,
    TracedPass,
    TracedRewriter,
    TracedRound,
)
from pytensor_fuse._trace.text import difference_text, trace_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytensor.graph.rewriting.basic import Rewriter

    from pytensor_fuse._trace.hooks import Frame, Tally

# Of what `Trace.to_dict` returns.
_FORMAT = 1


class Trace:
    """What `trace_rewrites` recorded.

    Seconds are those of ``time.perf_counter``. Those called ``seconds`` include what was started
    inside, those called ``own`` do not; of all passes of a call, the ``own`` and ``requirements``
    add up to its ``rewriting``.

    Attributes
    ----------
    seconds
        How long the trace was open.
    versions
        Those of PyTensor and of this package.
    """

    def __init__(self) -> None:
        self.serial = hooks.serial()
        self._began = perf_counter()
        self._frames: list[Frame] = []
        self._is_open = True
        self._read: tuple[TracedPass | TracedCall, ...] = ()
        self.seconds = 0.0
        self.versions = {"pytensor": pytensor.__version__, "pytensor_fuse": __version__}

    def hear(self, frame: Frame) -> None:
        """Take what ended in the body; not for others to call."""
        if self._is_open:
            self._frames.append(frame)

    def _close(self) -> None:
        self._is_open = False
        self.seconds = perf_counter() - self._began

    @property
    def calls(self) -> tuple[TracedCall, ...]:
        """The calls of `pytensor.function`, in the order in which they ended.

        What calls and rewriters started themselves is within them.
        """
        return tuple(each for each in self._outermost() if isinstance(each, TracedCall))

    @property
    def outside(self) -> tuple[TracedPass, ...]:
        """The passes that ran outside any such call, as `rewrite_graph` runs them."""
        return tuple(each for each in self._outermost() if isinstance(each, TracedPass))

    def _outermost(self) -> tuple[TracedPass | TracedCall, ...]:
        """Make the records once somebody reads them: that is no part of the compile."""
        if self._is_open:
            # A call has ended that may yet link.
            return tuple(_public(frame, self._began) for frame in list(self._frames))
        if self._frames:
            # If a record cannot be made, the frames are still there.
            self._read += tuple(_public(frame, self._began) for frame in self._frames)
            self._frames = []
        return self._read

    @property
    def rewriters(self) -> tuple[RewriterTotal, ...]:
        """The node rewriters, by name, over all passes; the one that took longest by itself first.

        Those with the same name are one: the same rewriter, as a rule, in several databases.
        """
        totals: dict[str, RewriterTotal] = {}
        for each in self.all_passes():
            for rewriter in each.rewriters:
                total = totals.setdefault(rewriter.name, RewriterTotal(rewriter.name))
                total.tried += rewriter.tried or 0
                total.fired += rewriter.fired or 0
                total.is_whole &= None not in (rewriter.tried, rewriter.fired)
                total.seconds += rewriter.seconds or 0.0
                total.own += rewriter.own or 0.0
                total.created += rewriter.created
                total.removed += rewriter.removed
                if each.name not in total.passes:
                    total.passes.append(each.name)
        return tuple(sorted(totals.values(), key=lambda total: (-total.own, total.name)))

    @property
    def never_fired(self) -> tuple[RewriterTotal, ...]:
        """Those of `rewriters` that changed nothing, whether they were tried or not."""
        return tuple(t for t in self.rewriters if t.fired == 0 and t.is_whole)

    @property
    def passes(self) -> tuple[PassTotal, ...]:
        """The passes, by name, over all calls; the one that took longest by itself first."""
        totals: dict[str, PassTotal] = {}
        for each in self.all_passes():
            total = totals.setdefault(each.name, PassTotal(each.name))
            total.runs += each.runs
            total.seconds += each.seconds
            total.own += each.own
            total.created += each.created
            total.removed += each.removed
        return tuple(sorted(totals.values(), key=lambda total: (-total.own, total.name)))

    def slowest(self, n: int = 10) -> tuple[PassTotal | RewriterTotal, ...]:
        """Return what took longest by itself: node rewriters, and passes without these.

        A group of node rewriters is without its members. The times of all there are add up to that
        of all passes.

        Raises
        ------
        ValueError
            If ``n`` is negative.
        """
        if n < 0:
            raise ValueError(f"cannot list {n} of them")
        # What a pass or a group spends in node rewriters is theirs.
        of_passes: dict[str, float] = {}
        of_groups: dict[str, float] = {}
        for each in self.all_passes():
            for rewriter in each.rewriters:
                spent, name = (
                    (of_passes, each.name)
                    if rewriter.group is None
                    else (of_groups, rewriter.group)
                )
                spent[name] = spent.get(name, 0.0) + (rewriter.own or 0.0)
        totals: list[PassTotal | RewriterTotal] = [
            *(
                replace(each, own=each.own - of_groups.get(each.name, 0.0))
                for each in self.rewriters
            ),
            *(replace(each, own=each.own - of_passes.get(each.name, 0.0)) for each in self.passes),
        ]
        return tuple(sorted(totals, key=lambda total: (-total.own, total.name))[:n])

    def all_passes(self) -> Iterator[TracedPass]:
        """Yield all passes, those inside others after these."""
        pending: list[TracedPass | TracedCall] = [*self.calls, *self.outside]
        pending.reverse()
        while pending:
            each = pending.pop()
            if isinstance(each, TracedPass):
                yield each
            pending.extend(reversed(each.inner))

    def diff(self, other: Trace) -> TraceDiff:
        """Return how ``other`` differs from this trace, as from before to after.

        Raises
        ------
        TypeError
            If ``other`` is no trace.
        """
        if not isinstance(other, Trace):
            raise TypeError(f"a trace differs from another trace, not from {other!r}")
        return TraceDiff(self, other)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, as JSON has them."""
        return {
            "format": _FORMAT,
            "versions": dict(self.versions),
            "clock": "perf_counter",
            "seconds": self.seconds,
            "calls": [_as_dict(each) for each in self.calls],
            "outside": [_as_dict(each) for each in self.outside],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Trace:
        """Return the trace that `to_dict` was called on, in this process or another.

        Raises
        ------
        ValueError
            If ``data`` is not from `to_dict`, or from that of another version.
        """
        found = data.get("format") if hasattr(data, "get") else None
        if found != _FORMAT:
            raise ValueError(f"this is not a trace of format {_FORMAT}: its format is {found!r}")
        trace = cls()
        trace._is_open = False
        try:
            trace.seconds = float(data["seconds"])
            trace.versions = dict(data["versions"])
            calls = [_call_of(each) for each in data["calls"]]
            trace._read = (*calls, *(_pass_of(each) for each in data["outside"]))
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(
                f"this is not a whole trace: {type(error).__name__} {error}"
            ) from error
        return trace

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Return a page with a flame chart and tables, or write it to a file.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        from pytensor_fuse._reports.files import write
        from pytensor_fuse._trace.page import trace_page

        text = trace_page(self)
        if path is None:
            return text
        write(path, text)
        return None

    def __str__(self) -> str:
        return trace_text(self)

    def __repr__(self) -> str:
        state = "open, " if self._is_open else ""
        return f"<Trace: {state}{len(self.calls)} calls, {self.seconds:.3f} s>"


class TraceDiff:
    """How a trace differs from one before it.

    Attributes
    ----------
    before, after
        The traces.
    """

    def __init__(self, before: Trace, after: Trace) -> None:
        self.before = before
        self.after = after

    @property
    def passes(self) -> tuple[tuple[str, PassTotal | None, PassTotal | None], ...]:
        """Name, before and after, of each pass; None where it is missing; by change of time."""
        return _paired(self.before.passes, self.after.passes)

    @property
    def rewriters(self) -> tuple[tuple[str, RewriterTotal | None, RewriterTotal | None], ...]:
        """Name, before and after, of each node rewriter, as in `passes`."""
        return _paired(self.before.rewriters, self.after.rewriters)

    def to_dict(self) -> dict[str, Any]:
        """Return the pairs in plain types, as JSON has them."""

        def plain(total: PassTotal | RewriterTotal | None) -> dict[str, Any] | None:
            return None if total is None else dict(vars(total))

        def rows(pairs: Iterable[tuple[str, Any, Any]]) -> list[dict[str, Any]]:
            return [{"name": n, "before": plain(a), "after": plain(b)} for n, a, b in pairs]

        return {
            "format": _FORMAT,
            "before": _totals(self.before),
            "after": _totals(self.after),
            "passes": rows(self.passes),
            "rewriters": rows(self.rewriters),
        }

    def __str__(self) -> str:
        return difference_text(self)


@contextmanager
def trace_rewrites() -> Iterator[Trace]:
    """Record the rewriting of every function that is compiled in the body.

    Yields
    ------
    Trace
        What happened; complete once the body is left, also if by an exception.

    Notes
    -----
    All threads are recorded: a call of `pytensor.function` belongs to every trace that is open from
    the beginning of the call to its end. Traces nest. What compiling a function starts in turn, a
    function within a rewrite or the rewriting of an inner graph, is within the call or pass that
    started it.

    Nothing about the compiled functions changes. Compiles took 2 to 9 % longer where that was
    measured. The records of a small call take some 200 kB, those of the large graph of the
    benchmarks 700 kB.

    Examples
    --------
    >>> import pytensor
    >>> import pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> with trace_rewrites() as trace:
    ...     f = pytensor.function([x], pt.exp(x) * 1 + pt.log(pt.exp(x)))
    >>> [call] = trace.calls
    >>> call.nodes_before, call.nodes_after
    (6, 1)
    >>> fired = [total.name for total in trace.rewriters if total.fired]
    >>> "local_mul_canonizer" in fired
    True
    """
    trace = Trace()
    hooks.listen(trace)
    try:
        yield trace
    finally:
        hooks.ignore(trace)
        trace._close()


def _public(frame: Frame, start: float) -> TracedPass | TracedCall:
    inner = [_public(each, start) for each in frame.frames]
    if frame.call is None:
        return _public_pass(frame, start, inner)
    call = frame.call
    passes = [each for each in inner if isinstance(each, TracedPass)]
    return TracedCall(
        name=call.name,
        where=call.where,
        thread=call.thread,
        began=frame.began - start,
        seconds=frame.seconds,
        rewriting=sum(each.seconds + each.requirements for each in passes),
        linking=call.linking,
        nodes_before=passes[0].nodes_before if passes else 0,
        nodes_after=passes[-1].nodes_after if passes else 0,
        created=sum(each.created for each in passes),
        removed=sum(each.removed for each in passes),
        error=frame.error,
        inner=tuple(inner),
    )


def _public_pass(frame: Frame, start: float, inner: list[TracedPass | TracedCall]) -> TracedPass:
    frame.settle()
    is_lost = frame.is_equilibrium and not frame.told
    is_tried = frame.has_asked or not frame.is_equilibrium
    tallies = sorted(frame.tallies.values(), key=lambda tally: tally.tried == 0)
    rounds = []
    began = frame.began - start
    for seconds, nodes, fired in frame.rounds:
        rounds.append(TracedRound(began, seconds, nodes, fired))
        began += seconds
    rewriter = frame.rewriter
    if rewriter is None:
        raise AssertionError("a pass without a rewriter")
    is_sequence = isinstance(rewriter, SequentialGraphRewriter)
    return TracedPass(
        name=_name(rewriter),
        kind=type(rewriter).__name__,
        within=None if frame.within is None else _name(frame.within.rewriter),
        runs=1,
        began=frame.began - start,
        seconds=frame.seconds,
        own=frame.seconds - frame.inside,
        requirements=frame.requirements,
        nodes_before=frame.n_before,
        nodes_after=frame.n_after,
        created=frame.created,
        removed=frame.removed,
        error=frame.error,
        rounds=tuple(rounds),
        rewriters=tuple(_public_rewriter(tally, is_lost, is_tried) for tally in tallies),
        # The order of a sequence says what came before what.
        inner=tuple(inner) if is_sequence else _summed(inner),
    )


def _public_rewriter(tally: Tally, is_lost: bool, is_tried: bool) -> TracedRewriter:
    is_lost = is_lost and tally.group is None
    return TracedRewriter(
        name=_name(tally.rewriter),
        group=None if tally.group is None else _name(tally.group.rewriter),
        tried=tally.tried if is_tried or tally.group is not None else None,
        fired=None if is_lost else tally.fired,
        seconds=None if is_lost else tally.seconds,
        own=None if is_lost else tally.seconds - tally.inside,
        created=tally.created,
        removed=tally.removed,
    )


def _summed(inner: list[TracedPass | TracedCall]) -> tuple[TracedPass | TracedCall, ...]:
    """Add up the runs of each pass; what is left is in the order of the first runs."""
    alike: dict[object, list[TracedPass]] = {}
    result: list[TracedPass | TracedCall] = []
    for each in inner:
        if isinstance(each, TracedCall):
            result.append(each)
        else:
            alike.setdefault((each.name, each.kind, each.within), []).append(each)
    result.extend(_sum(runs) if len(runs) > 1 else runs[0] for runs in alike.values())
    return tuple(sorted(result, key=lambda each: each.began))


def _sum(runs: list[TracedPass]) -> TracedPass:
    first, last = runs[0], runs[-1]
    rewriters: dict[object, list[TracedRewriter]] = {}
    for each in runs:
        for rewriter in each.rewriters:
            rewriters.setdefault((rewriter.name, rewriter.group), []).append(rewriter)
    errors = [each.error for each in runs if each.error is not None]
    return TracedPass(
        name=first.name,
        kind=first.kind,
        within=first.within,
        runs=sum(each.runs for each in runs),
        began=first.began,
        seconds=sum(each.seconds for each in runs),
        own=sum(each.own for each in runs),
        requirements=sum(each.requirements for each in runs),
        nodes_before=first.nodes_before,
        nodes_after=last.nodes_after,
        created=sum(each.created for each in runs),
        removed=sum(each.removed for each in runs),
        error=errors[0] if errors else None,
        rounds=(),
        rewriters=tuple(_sum_of_rewriters(same) for same in rewriters.values()),
        inner=_summed([each for run in runs for each in run.inner]),
    )


def _sum_of_rewriters(same: list[TracedRewriter]) -> TracedRewriter:
    def total(values: list[Any]) -> Any:
        return None if None in values else sum(values)

    return TracedRewriter(
        name=same[0].name,
        group=same[0].group,
        tried=total([each.tried for each in same]),
        fired=total([each.fired for each in same]),
        seconds=total([each.seconds for each in same]),
        own=total([each.own for each in same]),
        created=sum(each.created for each in same),
        removed=sum(each.removed for each in same),
    )


def _name(rewriter: Rewriter) -> str:
    """Return what people know a rewriter by, the same in every process."""
    for attribute in ("name", "__name__"):
        name = getattr(rewriter, attribute, None)
        if isinstance(name, str) and name:
            # A rewriter that a query adds is given its address for a name.
            return name.replace(f"_{id(rewriter)}", "")
    if type(rewriter).__str__ is object.__str__ or isinstance(rewriter, SequentialGraphRewriter):
        return type(rewriter).__name__
    try:
        text = str(rewriter)
    except Exception:
        return type(rewriter).__name__
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def _paired(before: Iterable[Any], after: Iterable[Any]) -> tuple[tuple[str, Any, Any], ...]:
    first = {total.name: total for total in before}
    second = {total.name: total for total in after}

    def change(name: str) -> tuple[float, str]:
        own = [0.0 if total is None else total.own for total in (first.get(name), second.get(name))]
        return -abs(own[1] - own[0]), name

    names = sorted({**first, **second}, key=change)
    return tuple((name, first.get(name), second.get(name)) for name in names)


def _totals(trace: Trace) -> dict[str, Any]:
    return {
        "calls": len(trace.calls),
        "seconds": sum(call.seconds for call in trace.calls),
        "rewriting": sum(call.rewriting for call in trace.calls),
        "linking": sum(call.linking for call in trace.calls),
        "nodes_before": sum(call.nodes_before for call in trace.calls),
        "nodes_after": sum(call.nodes_after for call in trace.calls),
        "created": sum(call.created for call in trace.calls),
        "removed": sum(call.removed for call in trace.calls),
    }


def _as_dict(each: TracedPass | TracedCall) -> dict[str, Any]:
    plain = dict(vars(each))
    plain["inner"] = [_as_dict(inner) for inner in each.inner]
    if isinstance(each, TracedPass):
        plain["rounds"] = [dict(vars(one)) for one in each.rounds]
        plain["rewriters"] = [dict(vars(one)) for one in each.rewriters]
    return {"is": "pass" if isinstance(each, TracedPass) else "call", **plain}


def _inner_of(data: Mapping[str, Any]) -> tuple[TracedPass | TracedCall, ...]:
    return tuple(
        _call_of(each) if each["is"] == "call" else _pass_of(each) for each in data["inner"]
    )


def _call_of(data: Mapping[str, Any]) -> TracedCall:
    plain = {name: value for name, value in data.items() if name != "is"}
    return TracedCall(**{**plain, "inner": _inner_of(data)})


def _pass_of(data: Mapping[str, Any]) -> TracedPass:
    plain = {name: value for name, value in data.items() if name != "is"}
    plain["rounds"] = tuple(TracedRound(**each) for each in data["rounds"])
    plain["rewriters"] = tuple(TracedRewriter(**each) for each in data["rewriters"])
    return TracedPass(**{**plain, "inner": _inner_of(data)})
