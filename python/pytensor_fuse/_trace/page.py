"""The page of a trace: its figures, and tables to sort and search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor_fuse._reports import page
from pytensor_fuse._reports.text import cached_text
from pytensor_fuse._trace.records import PassTotal, TracedCall
from pytensor_fuse._trace.text import seconds_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytensor_fuse._trace.recording import Recording

# The columns of the tables: their headings by the quantities that they show.
_CHANGES = {"created": "created", "removed": "thrown away"}
_TOTALS = {"own": "own time", "seconds": "time", **_CHANGES}
_SLOWEST = {"name": "name", "kind": "", "own": "own time", **_CHANGES}
_REWRITERS = {"name": "name", "tried": "tried", "fired": "fired", **_TOTALS, "passes": "passes"}
_PASSES = {"name": "name", "runs": "runs", **_TOTALS}
_CALLS = {
    "name": "name",
    "where": "where",
    "thread": "thread",
    "seconds": "time",
    "rewriting": "rewriting",
    "linking": "linking",
    "nodes_before": "nodes",
    "nodes_after": "after",
    "result": "raised, or not rewritten",
}

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
{_section("The slowest, by themselves", _SLOWEST, trace.slowest(), is_sorted=False)}
{_section("Node rewriters", _REWRITERS, trace.rewriters)}
{_section("Passes", _PASSES, trace.passes)}
{_section("Calls", _CALLS, calls)}
</main>"""


def _arrow(calls: Iterable[TracedCall]) -> str:
    before = sum(call.nodes_before for call in calls)
    return f"{before} \u2192 {sum(call.nodes_after for call in calls)}"


def _cell_of(record: Any, what: str) -> str | tuple[str, float]:
    """Return a cell: a text, or for a number a pair of its text and its sort key."""
    match what:
        case "kind":
            return "pass" if isinstance(record, PassTotal) else "node rewriter"
        case "passes":
            return ", ".join(record.passes)
        case "result":
            return record.error or ("" if record.cached is None else cached_text(record.cached))
        case "own" | "seconds" | "rewriting" | "linking":
            return seconds_text(getattr(record, what)), getattr(record, what)
    value = getattr(record, what)
    return (str(value), value) if isinstance(value, int | float) else value or ""


def _section(
    title: str, columns: Mapping[str, str], records: Sequence[Any], *, is_sorted: bool = True
) -> str:
    """Return a table with a row for each record."""
    if not records:
        return ""
    rows = [[_cell_of(each, what) for what in columns] for each in records]
    numeric = [isinstance(cell, tuple) for cell in rows[0]]
    head = "".join(
        f"<th{' class=number' if is_number else ''}>{page.escape(heading)}</th>"
        for heading, is_number in zip(columns.values(), numeric, strict=True)
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
