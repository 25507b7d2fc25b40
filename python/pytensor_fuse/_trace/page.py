"""The page of a trace: its figures, and tables to sort and search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor_fuse._reports import page
from pytensor_fuse._reports.text import cached_text
from pytensor_fuse._trace.text import seconds_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor_fuse._trace.recording import Recording
    from pytensor_fuse._trace.records import TracedCall

# Longer names, such as those of groups, are cut; a tooltip shows them whole.
_SHOWN_LETTERS = 90


def trace_page(trace: Recording) -> str:
    """Return the page of a trace."""
    text = page.page(
        "Trace of rewriting",
        _body(trace),
        style=page.asset(__package__, "trace.css"),
        script=page.asset(__package__, "tables.js"),
    )
    # Names may contain lone surrogates, which no encoding represents.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _body(trace: Recording) -> str:
    calls = trace.calls
    seconds = sum(call.seconds for call in calls)
    unused = [total for total in trace.never_fired if total.tried]
    figures = [
        (str(len(calls)), "calls of pytensor.function"),
        (seconds_text(seconds), "in these"),
        (seconds_text(sum(call.rewriting for call in calls)), "rewriting"),
        (seconds_text(sum(call.linking for call in calls)), "linking"),
        (_arrow(calls), "nodes"),
        (str(sum(call.created for call in calls)), "nodes created"),
        (str(sum(call.removed for call in calls)), "nodes thrown away"),
        (f"{len(trace.never_fired)} of {len(trace.rewriters)}", "node rewriters never fired"),
        (seconds_text(sum(total.own for total in unused)), "spent on trying those"),
    ]
    tiles = "".join(f"<div><b>{page.escape(a)}</b><span>{b}</span></div>" for a, b in figures)
    versions = ", ".join(f"{name} {version}" for name, version in trace.versions.items())
    return f"""<main>
<h1>Trace of rewriting</h1>
<p class="note">{page.escape(versions)}; times are of time.perf_counter</p>
<div class="figures">{tiles}</div>
<div class="bar">
<input type="search" id="search" placeholder="search names (/)" aria-label="search names">
</div>
<p class="note">Node rewriters, and passes that ran repeatedly, are summed within their pass.
For a flame chart, open the file that trace.to_speedscope writes in
<a href="https://www.speedscope.app">speedscope</a>.</p>
{_slowest_table(trace)}
{_rewriter_table(trace)}
{_pass_table(trace)}
{_call_table(calls)}
</main>"""


def _arrow(calls: Iterable[TracedCall]) -> str:
    before = sum(call.nodes_before for call in calls)
    return f"{before} \u2192 {sum(call.nodes_after for call in calls)}"


def _slowest_table(trace: Recording) -> str:
    rows = [
        [
            total.name,
            "pass" if hasattr(total, "runs") else "node rewriter",
            _time(total.own),
            _count(total.created),
            _count(total.removed),
        ]
        for total in trace.slowest()
    ]
    headings = ["name", "", "own time", "created", "thrown away"]
    return _section("The slowest, by themselves", headings, rows, is_sorted=False)


def _rewriter_table(trace: Recording) -> str:
    rows = [
        [
            total.name,
            _count(total.tried),
            _count(total.fired),
            _time(total.own),
            _time(total.seconds),
            _count(total.created),
            _count(total.removed),
            ", ".join(total.passes),
        ]
        for total in trace.rewriters
    ]
    headings = ["name", "tried", "fired", "own time", "time", "created", "thrown away", "passes"]
    return _section("Node rewriters", headings, rows)


def _pass_table(trace: Recording) -> str:
    rows = [
        [
            total.name,
            _count(total.runs),
            _time(total.own),
            _time(total.seconds),
            _count(total.created),
            _count(total.removed),
        ]
        for total in trace.passes
    ]
    headings = ["name", "runs", "own time", "time", "created", "thrown away"]
    return _section("Passes", headings, rows)


def _call_table(calls: Iterable[TracedCall]) -> str:
    rows = [
        [
            call.name or "",
            call.where or "",
            call.thread,
            _time(call.seconds),
            _time(call.rewriting),
            _time(call.linking),
            _count(call.nodes_before),
            _count(call.nodes_after),
            call.error or ("" if call.cached is None else cached_text(call.cached)),
        ]
        for call in calls
    ]
    headings = [
        "name",
        "where",
        "thread",
        "time",
        "rewriting",
        "linking",
        "nodes",
        "after",
        "raised, or not rewritten",
    ]
    return _section("Calls", headings, rows)


def _time(seconds: float) -> tuple[str, float]:
    return seconds_text(seconds), seconds


def _count(n: int) -> tuple[str, float]:
    return str(n), n


def _section(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[Any]], *, is_sorted: bool = True
) -> str:
    """Return a table; a numeric cell is a pair: the shown text, and the sort key."""
    if not rows:
        return ""
    numeric = [isinstance(cell, tuple) for cell in rows[0]]
    head = "".join(
        f"<th{' class=number' if is_number else ''}>{page.escape(heading)}</th>"
        for heading, is_number in zip(headings, numeric, strict=True)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    attributes = ' class="sorted"' if is_sorted else ""
    return (
        f'<h2>{page.escape(title)}</h2>\n<div class="scroll"><table{attributes}>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
    )


def _cell(cell: Any) -> str:
    if isinstance(cell, tuple):
        shown, value = cell
        return f'<td class="number" data-value="{value:.9g}">{page.escape(shown)}</td>'
    if len(cell) > _SHOWN_LETTERS:
        shown = f"{cell[: _SHOWN_LETTERS - 1]}\u2026"
        return f'<td class="name" title="{page.escape(cell)}">{page.escape(shown)}</td>'
    return f'<td class="name">{page.escape(cell)}</td>'
