"""Traces: the passes and rewriters that ran for a compiled function, their changes and times."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, overload

from pytensor_fuse._reports.files import written
from pytensor_fuse._reports.page import escape, frame
from pytensor_fuse._reports.report import PageReport
from pytensor_fuse._reports.text import count, size
from pytensor_fuse._trace import instrumentation
from pytensor_fuse._trace.difference import Difference
from pytensor_fuse._trace.exports import chrome_trace, speedscope
from pytensor_fuse._trace.page import trace_page
from pytensor_fuse._trace.plain import difference_to_dict, recording_from_dict, recording_to_dict
from pytensor_fuse._trace.recorders import Recorder
from pytensor_fuse._trace.recording import Recording
from pytensor_fuse._trace.text import difference_text, seconds_text, trace_text

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from pytensor_fuse._trace.records import PassTotal, RewriterTotal, TracedCall, TracedPass

# Larger pages are not embedded in notebooks, which store them.
_NOTEBOOK_LETTERS = 1_000_000


class Trace(PageReport):
    """The recording of `pytensor_fuse.trace`.

    Seconds are those of ``time.perf_counter``. Attributes named ``seconds`` include inner passes
    and calls; those named ``own`` do not. The ``own`` and ``requirements`` of all passes of a call
    add up to its ``rewriting``; there, the time of node rewriters counts for their pass. In the
    totals over all calls, in texts and on pages it counts for the node rewriters alone, so that no
    second is counted twice.
    """

    def __init__(self, recorder: Recorder | None = None) -> None:
        self._recorder = Recorder() if recorder is None else recorder

    @property
    def seconds(self) -> float:
        """How long the trace was open."""
        return self._recorder.seconds

    @property
    def versions(self) -> dict[str, str]:
        """The versions of PyTensor and of this package."""
        return self._recorder.versions

    @property
    def calls(self) -> tuple[TracedCall, ...]:
        """The calls of `pytensor.function`, in the order of their ends.

        Calls that other calls and rewriters started are within these.
        """
        return self._recorder.recording().calls

    @property
    def outside(self) -> tuple[TracedPass, ...]:
        """The passes that ran outside any such call, as `rewrite_graph` runs them."""
        return self._recorder.recording().outside

    @property
    def rewriters(self) -> tuple[RewriterTotal, ...]:
        """Totals of the node rewriters over all passes, by own time, the slowest first.

        Rewriters with the same name are merged: usually the same one in several databases.
        """
        return self._recorder.recording().rewriters

    @property
    def never_fired(self) -> tuple[RewriterTotal, ...]:
        """The node rewriters that changed nothing, whether they were tried or not."""
        return self._recorder.recording().never_fired

    @property
    def passes(self) -> tuple[PassTotal, ...]:
        """Totals of the passes over all calls, by own time, the slowest first."""
        return self._recorder.recording().passes

    def slowest(self, n: int = 10) -> tuple[PassTotal | RewriterTotal, ...]:
        """Return the passes and node rewriters with the longest own times.

        Parameters
        ----------
        n : int, optional
            The maximum number of items.

        Returns
        -------
        tuple of PassTotal or RewriterTotal
            The items of `passes` and `rewriters` with the most ``own`` seconds, the slowest first.
            Over all items, these seconds add up to the time of all passes.

        Raises
        ------
        ValueError
            If ``n`` is negative.
        """
        return self._recorder.recording().slowest(n)

    def all_passes(self) -> Iterator[TracedPass]:
        """Yield all passes in preorder."""
        return self._recorder.recording().all_passes()

    def diff(self, other: Trace) -> TraceDiff:
        """Compare this trace with a later one.

        Parameters
        ----------
        other : Trace
            The later trace.

        Returns
        -------
        TraceDiff
            Passes and node rewriters by name, each before and after.

        Raises
        ------
        TypeError
            If ``other`` is not a trace.
        """
        if not isinstance(other, Trace):
            raise TypeError(f"a trace differs from another trace, not from {other!r}")
        return TraceDiff(self, other)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, as in JSON."""
        return recording_to_dict(self._recorder.recording())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Trace:
        """Return the trace that `to_dict` was called on, in this process or another.

        Parameters
        ----------
        data : mapping
            The result of `to_dict`, also after a round trip through JSON.

        Returns
        -------
        Trace
            A closed trace.

        Raises
        ------
        ValueError
            If ``data`` is not from `to_dict`, or from an incompatible version.
        """
        return cls(Recorder(recording_from_dict(data)))

    def _page(self) -> str:
        return trace_page(self._recorder.recording())

    @overload
    def to_speedscope(self, path: None = None) -> str: ...

    @overload
    def to_speedscope(self, path: str | os.PathLike[str]) -> None: ...

    def to_speedscope(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Make a file for speedscope, https://www.speedscope.app, with a profile for each thread.

        Times are in seconds since the trace began. Node rewriters and repeated passes are summed
        within their parent.

        Parameters
        ----------
        path : str or os.PathLike, optional
            The file to write.

        Returns
        -------
        str or None
            The text of the file, which is JSON, if no path is given.

        Raises
        ------
        OSError
            If the file cannot be written. An existing file is then unchanged.
        """
        return written(speedscope(self._recorder.recording()), path)

    @overload
    def to_chrome_trace(self, path: None = None) -> str: ...

    @overload
    def to_chrome_trace(self, path: str | os.PathLike[str]) -> None: ...

    def to_chrome_trace(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Make a file of trace events, for https://ui.perfetto.dev and ``chrome://tracing``.

        Times are in microseconds since the trace began. Node rewriters and repeated passes are
        summed within their parent, as on the page.

        Parameters
        ----------
        path : str or os.PathLike, optional
            The file to write.

        Returns
        -------
        str or None
            The text of the file, which is JSON, if no path is given.

        Raises
        ------
        OSError
            If the file cannot be written. An existing file is then unchanged.
        """
        return written(chrome_trace(self._recorder.recording()), path)

    def __str__(self) -> str:
        return trace_text(self._recorder.recording())

    def __repr__(self) -> str:
        state = "open, " if self._recorder.is_open else ""
        seconds = seconds_text(sum(call.seconds for call in self.calls))
        return f"<Trace: {state}{count(len(self.calls), 'call')} in {seconds}>"

    def _repr_html_(self) -> str:
        """Return the page in a frame for Jupyter, or the text if the page is large."""
        text = self.to_html()
        if len(text) > _NOTEBOOK_LETTERS:
            return (
                f"<pre>{escape(self)}</pre><p>A page of {size(len(text))}: too large to be kept in "
                "a notebook; <code>to_html(path)</code> writes it.</p>"
            )
        return frame("Trace of rewriting", text)


class TraceDiff:
    """The difference of two traces.

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
        """Name, before and after of each pass, by change of time; None where it is missing."""
        return self._difference().passes

    @property
    def rewriters(self) -> tuple[tuple[str, RewriterTotal | None, RewriterTotal | None], ...]:
        """Name, before and after of each node rewriter, as in `passes`."""
        return self._difference().rewriters

    def to_dict(self) -> dict[str, Any]:
        """Return the pairs in plain types, as in JSON."""
        return difference_to_dict(self._difference())

    def __str__(self) -> str:
        return difference_text(self._difference())

    def _difference(self) -> Difference:
        return Difference(_recording_of(self.before), _recording_of(self.after))


def _recording_of(trace: Trace) -> Recording:
    return Recording(trace.calls, trace.outside, trace.seconds, trace.versions)


@contextmanager
def trace() -> Iterator[Trace]:
    """Record the rewriting of every function that is compiled in the body.

    Yields
    ------
    Trace
        The trace, which is complete once the body is left, also by an exception.

    Notes
    -----
    All threads are recorded: a call of `pytensor.function` belongs to every trace that is open from
    the beginning of the call to its end. Traces nest. Compilations and rewriting that a call or
    pass starts, such as of a function within a rewrite or of an inner graph, are recorded within
    that call or pass.

    The compiled functions do not change. In measurements, compilation took 2 to 9 % longer. The
    records of a small call take some 200 kB, those of the large graph of the benchmarks 700 kB.

    Examples
    --------
    >>> import pytensor
    >>> import pytensor.tensor as pt
    >>> import pytensor_fuse
    >>> x = pt.vector("x")
    >>> with pytensor_fuse.trace() as recorded:
    ...     f = pytensor.function([x], pt.exp(x) * 1 + pt.log(pt.exp(x)))
    >>> [call] = recorded.calls
    >>> call.nodes_before, call.nodes_after
    (6, 1)
    >>> fired = [total.name for total in recorded.rewriters if total.fired]
    >>> "local_mul_canonizer" in fired
    True
    """
    recorder = Recorder()
    instrumentation.start(recorder)
    try:
        yield Trace(recorder)
    finally:
        instrumentation.stop(recorder)
        recorder.close()
