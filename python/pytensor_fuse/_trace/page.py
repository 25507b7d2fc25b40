"""The page of a trace: a flame chart, and tables to sort and search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor_fuse._reports import page
from pytensor_fuse._reports.scripts import script
from pytensor_fuse._reports.text import cached_text
from pytensor_fuse._trace.flame_chart import flame_chart
from pytensor_fuse._trace.text import seconds_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor_fuse._trace.recording import Recording
    from pytensor_fuse._trace.records import TracedCall

# Bars narrower than this share of the whole are omitted: a fortieth of a pixel before any zoom.
_DRAWN = 2e-5
# The maximum number of bars on a page, which take some megabytes.
_MOST_BARS = 15_000
# Longer names, such as those of groups, are cut; a tooltip shows them whole.
_SHOWN_LETTERS = 90

_KINDS = (
    ("call", "call, linking"),
    ("sequence", "sequence of passes"),
    ("equilibrium", "pass until nothing changes"),
    ("round", "round of one"),
    ("pass", "other pass"),
    ("fired", "node rewriter that fired"),
    ("idle", "node rewriter that did not"),
    ("other", "features asked for"),
)


def trace_page(trace: Recording) -> str:
    """Return the page of a trace."""
    bars, width = flame_chart([*trace.calls, *trace.outside])
    widths = sorted((bar.width for bar in bars), reverse=True)
    least = widths[_MOST_BARS] if len(widths) > _MOST_BARS else 0.0
    drawn = [bar for bar in bars if bar.width >= _DRAWN * width and bar.width > least]
    n_left_out = len(bars) - len(drawn)
    data = {
        "width": width,
        "bars": [
            [bar.name, bar.depth, round(bar.start, 7), round(bar.width, 7), bar.kind, bar.details]
            for bar in drawn
        ],
    }
    text = page.page(
        "Trace of rewriting",
        _body(trace, n_left_out),
        style=page.asset(__package__, "trace.css"),
        script=script(__package__, "trace/main.js"),
        data=data,
    )
    # Names may contain lone surrogates, which no encoding represents.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _body(trace: Recording, n_left_out: int) -> str:
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
    legend = "".join(f'<span><i class="k-{kind}"></i>{text}</span>' for kind, text in _KINDS)
    versions = ", ".join(f"{name} {version}" for name, version in trace.versions.items())
    left_out = f" {n_left_out} boxes too narrow to see are left out." if n_left_out else ""
    return f"""<main>
<h1>Trace of rewriting</h1>
<p class="note">{page.escape(versions)}; times are of time.perf_counter</p>
<div class="figures">{tiles}</div>
<div class="bar">
<input type="search" id="search" placeholder="search names (/)" aria-label="search names">
<button type="button" id="whole">whole trace (Esc)</button>
<span id="found" aria-live="polite"></span>
</div>
<div class="legend">{legend}</div>
<div id="chart" role="img" aria-label="flame chart of the trace"></div>
<div id="details">Point at a box for a description; click to zoom in, Ctrl and wheel to zoom.
Time runs to the right. Node rewriters, and passes that ran repeatedly (x), are summed within
their pass.{left_out}</div>
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
