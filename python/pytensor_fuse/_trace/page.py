"""Traces as a page: a flame chart, and tables to sort and search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytensor_fuse._reports import page
from pytensor_fuse._reports.scripts import script
from pytensor_fuse._trace.records import TracedCall, TracedPass, TracedRewriter
from pytensor_fuse._trace.text import call_title, seconds_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor_fuse._trace.trace import Trace

# What takes less than this part of the whole is left out: a fortieth of a pixel before any zoom.
_DRAWN = 2e-5
# The most that a page draws: some megabytes.
_MOST_BOXES = 15_000
# A wait between calls takes up no more than this part of what the calls take.
_GAP = 0.02
# Of longer names, those of groups, the page shows the rest when it is pointed at.
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


@dataclass(frozen=True)
class Box:
    """A rectangle of the chart: seconds from its left edge, and rows from its top."""

    name: str
    depth: int
    start: float
    width: float
    kind: str
    details: str


def trace_page(trace: Trace) -> str:
    """Return the page of a trace."""
    boxes, width = flame_chart([*trace.calls, *trace.outside])
    widths = sorted((box.width for box in boxes), reverse=True)
    least = widths[_MOST_BOXES] if len(widths) > _MOST_BOXES else 0.0
    drawn = [box for box in boxes if box.width >= _DRAWN * width and box.width > least]
    n_left_out = len(boxes) - len(drawn)
    data = {
        "width": width,
        "boxes": [
            [box.name, box.depth, round(box.start, 7), round(box.width, 7), box.kind, box.details]
            for box in drawn
        ],
    }
    text = page.page(
        "Trace of rewriting",
        _body(trace, n_left_out),
        style=page.asset(__package__, "trace.css"),
        script=script(__package__, "trace/main.js"),
        data=data,
    )
    # Names of functions, files and threads may hold halves of pairs, which no file can.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def flame_chart(outermost: Sequence[TracedPass | TracedCall]) -> tuple[list[Box], float]:
    """Return the boxes of a flame chart, and its width in seconds.

    Calls, the passes of a sequence and rounds are where they were in time, but for long waits
    between calls. What was added up, node rewriters and clean-up passes, is side by side within
    what it ran in, the longest first. What overlaps, in several threads, is in rows of its own.
    """
    ordered = sorted(outermost, key=_start_of)
    busy = sum(_width_of(each) for each in ordered)
    lanes: list[tuple[float, list[Box]]] = []
    cut = end = 0.0
    for number, each in enumerate(ordered):
        start = _start_of(each)
        gap = start - end
        allowed = _GAP * busy if number else 0.0
        cut += max(0.0, gap - allowed)
        end = max(end, start + _width_of(each))
        boxes: list[Box] = []
        _draw(each, start - cut, 0, boxes)
        free = next((i for i, lane in enumerate(lanes) if lane[0] <= start), None)
        if free is None:
            lanes.append((start + _width_of(each), boxes))
        else:
            lanes[free] = (start + _width_of(each), [*lanes[free][1], *boxes])
    result: list[Box] = []
    depth = 0
    for _, boxes in lanes:
        result += [Box(b.name, b.depth + depth, b.start, b.width, b.kind, b.details) for b in boxes]
        depth += 1 + max(box.depth for box in boxes)
    return result, end - cut


def _start_of(each: TracedPass | TracedCall) -> float:
    return each.began - (each.requirements if isinstance(each, TracedPass) else 0.0)


def _width_of(each: TracedPass | TracedCall) -> float:
    return each.seconds + (each.requirements if isinstance(each, TracedPass) else 0.0)


def _draw(each: TracedPass | TracedCall, start: float, depth: int, boxes: list[Box]) -> None:
    """Draw what is where it was in time, from ``start``, the rest within it."""
    if isinstance(each, TracedPass):
        _draw_pass(each, start, depth, boxes, packed=False)
        return
    boxes.append(Box(call_title(each), depth, start, each.seconds, "call", _call_details(each)))
    linking = start + each.seconds - each.linking
    if each.linking:
        boxes.append(Box("linking", depth + 1, linking, each.linking, "call", ""))
    for inner in each.inner:
        is_linked = isinstance(inner, TracedCall)
        at = start + _start_of(inner) - each.began
        _draw(inner, at, depth + 1 + is_linked, boxes)


def _draw_pass(
    each: TracedPass, start: float, depth: int, boxes: list[Box], *, packed: bool
) -> None:
    if each.requirements:
        details = f"Attached before {each.name} runs: what its passes ask for."
        box = Box("features asked for", depth, start, each.requirements, "other", details)
        boxes.append(box)
        start += each.requirements
    boxes.append(Box(_pass_name(each), depth, start, each.seconds, _kind(each), _details(each)))
    depth += 1
    if each.kind == "SequentialGraphRewriter":
        at = start
        for inner in each.inner:
            if not packed:
                at = start + _start_of(inner) - each.began
            _draw_inner(inner, at, depth, boxes, packed=packed)
            at += _width_of(inner)
        return
    if each.rounds:
        for number, one in enumerate(each.rounds, 1):
            at = start + one.began - each.began
            details = f"{one.nodes} nodes, {one.fired} changes"
            boxes.append(Box(f"round {number}", depth, at, one.seconds, "round", details))
        depth += 1
    tops = [rewriter for rewriter in each.rewriters if rewriter.group is None]
    direct = [inner for inner in each.inner if _within(inner, tops) is None]
    parts: list[TracedRewriter | TracedPass | TracedCall] = [*tops, *direct]
    at = start
    for part in sorted(parts, key=lambda part: -_part_width(part)):
        if isinstance(part, TracedRewriter):
            _draw_rewriter(part, each, at, depth, boxes)
        else:
            _draw_inner(part, at, depth, boxes, packed=True)
        at += _part_width(part)


def _draw_inner(
    inner: TracedPass | TracedCall, at: float, depth: int, boxes: list[Box], *, packed: bool
) -> None:
    if isinstance(inner, TracedPass):
        _draw_pass(inner, at, depth, boxes, packed=packed or inner.runs > 1)
    else:
        _draw(inner, at, depth, boxes)


def _draw_rewriter(
    rewriter: TracedRewriter, owner: TracedPass, at: float, depth: int, boxes: list[Box]
) -> None:
    seconds = rewriter.seconds or 0.0
    if not seconds:
        return
    kind = "fired" if rewriter.fired else "idle"
    boxes.append(Box(rewriter.name, depth, at, seconds, kind, _rewriter_details(rewriter, owner)))
    members = [each for each in owner.rewriters if each.group == rewriter.name]
    for member in sorted(members, key=lambda each: -(each.seconds or 0.0)):
        _draw_rewriter(member, owner, at, depth + 1, boxes)
        at += member.seconds or 0.0
    for inner in owner.inner:
        if isinstance(inner, TracedPass) and inner.within == rewriter.name:
            _draw_inner(inner, at, depth + 1, boxes, packed=True)
            at += _width_of(inner)


def _within(
    inner: TracedPass | TracedCall, rewriters: Iterable[TracedRewriter]
) -> TracedRewriter | None:
    if isinstance(inner, TracedCall):
        return None
    return next((each for each in rewriters if each.name == inner.within and each.seconds), None)


def _part_width(part: TracedRewriter | TracedPass | TracedCall) -> float:
    return part.seconds or 0.0 if isinstance(part, TracedRewriter) else _width_of(part)


def _kind(each: TracedPass) -> str:
    if each.kind == "SequentialGraphRewriter":
        return "sequence"
    return "equilibrium" if each.kind.endswith("EquilibriumGraphRewriter") else "pass"


def _pass_name(each: TracedPass) -> str:
    return f"{each.name} x{each.runs}" if each.runs > 1 else each.name


def _call_details(call: TracedCall) -> str:
    lines = [
        f"rewriting {seconds_text(call.rewriting)}, linking {seconds_text(call.linking)}",
        f"nodes {call.nodes_before} -> {call.nodes_after}; {call.created} created, "
        f"{call.removed} thrown away",
        f"called at {call.where}, in {call.thread}",
    ]
    return "\n".join(lines + ([f"raised {call.error}"] if call.error else []))


def _details(each: TracedPass) -> str:
    lines = [f"{each.kind}; without passes inside {seconds_text(each.own)}"]
    if each.runs > 1:
        lines[0] += f"; {each.runs} runs, added up"
    else:
        lines.append(f"nodes {each.nodes_before} -> {each.nodes_after}")
    lines.append(f"{each.created} created, {each.removed} thrown away")
    if each.within:
        lines.append(f"started by {each.within}")
    return "\n".join(lines + ([f"raised {each.error}"] if each.error else []))


def _rewriter_details(rewriter: TracedRewriter, owner: TracedPass) -> str:
    tried = "?" if rewriter.tried is None else rewriter.tried
    fired = "?" if rewriter.fired is None else rewriter.fired
    where = f"in {owner.name}" if rewriter.group is None else f"in the group {rewriter.group}"
    return (
        f"{where}: tried {tried} times, fired {fired} times, added up\n"
        f"{rewriter.created} nodes created, {rewriter.removed} thrown away"
    )


def _body(trace: Trace, n_left_out: int) -> str:
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
<div id="details">Point at a box to see what it is; click to look closer, Ctrl and wheel to zoom.
Time runs to the right. Node rewriters, and passes that ran again and again (x), are added up
within the pass that they ran in.{left_out}</div>
{_slowest_table(trace)}
{_rewriter_table(trace)}
{_pass_table(trace)}
{_call_table(calls)}
</main>"""


def _arrow(calls: Iterable[TracedCall]) -> str:
    before = sum(call.nodes_before for call in calls)
    return f"{before} \u2192 {sum(call.nodes_after for call in calls)}"


def _slowest_table(trace: Trace) -> str:
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


def _rewriter_table(trace: Trace) -> str:
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


def _pass_table(trace: Trace) -> str:
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
            call.error or "",
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
        "raised",
    ]
    return _section("Calls", headings, rows)


def _time(seconds: float) -> tuple[str, float]:
    return seconds_text(seconds), seconds


def _count(n: int) -> tuple[str, float]:
    return str(n), n


def _section(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[Any]], *, is_sorted: bool = True
) -> str:
    """Return a table; a cell that is a pair is a number, as shown and as sorted by."""
    if not rows:
        return ""
    numeric = [isinstance(cell, tuple) for cell in rows[0]]
    head = "".join(
        f"<th{' class=number' if is_number else ''}>{page.escape(heading)}</th>"
        for heading, is_number in zip(headings, numeric, strict=True)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    kind = ' class="sorted"' if is_sorted else ""
    return (
        f'<h2>{page.escape(title)}</h2>\n<div class="scroll"><table{kind}>\n'
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
