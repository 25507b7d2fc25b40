"""Traces as tables of text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pytensor_fuse._reports.text import cached_text, count
from pytensor_fuse._trace.difference import Difference, call_totals
from pytensor_fuse._trace.records import RewriterTotal, TracedCall, TracedPass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor_fuse._trace.recording import Recording

# The maximum lengths of lists and names in the text.
_SHOWN_CALLS = 5
_SHOWN_SLOWEST = 10
_SHOWN_UNUSED = 12
_SHOWN_CHANGES = 20
_SHOWN_LETTERS = 48
# Passes below this share of their call's time that changed nothing share a line.
_NOTABLE = 0.01

_EXPLANATION = (
    "Times are of time.perf_counter; own: of a pass, or a node rewriter, by itself, without what "
    "it started."
)


def trace_text(trace: Recording) -> str:
    """Return tables of the calls, the slowest items, and the rewriters that never fired."""
    lines = [_summary(trace), _EXPLANATION]
    slowest = sorted(trace.calls, key=lambda call: -call.seconds)[:_SHOWN_CALLS]
    for number, call in enumerate(trace.calls, 1):
        if any(call is shown for shown in slowest):
            lines += ["", *_call_lines(number, call)]
    if len(trace.calls) > len(slowest):
        lines += ["", f"and {len(trace.calls) - len(slowest)} calls that took less time"]
    if trace.outside:
        rest = seconds_text(sum(each.seconds for each in trace.outside))
        lines += ["", f"outside calls of pytensor.function: {len(trace.outside)} passes, {rest}"]
    totals = trace.slowest(_SHOWN_SLOWEST)
    if totals:
        rows = [
            [
                total.name,
                seconds_text(total.own),
                *(
                    [str(total.tried), str(total.fired)]
                    if isinstance(total, RewriterTotal)
                    else ["pass", count(total.runs, "run")]
                ),
                f"+{total.created}",
                f"-{total.removed}",
            ]
            for total in totals
        ]
        lines += ["", f"the slowest {len(rows)} by themselves, over all calls"]
        lines += _table(["name", "own", "tried", "fired", "nodes", ""], rows)
    unused = [total for total in trace.never_fired if total.tried]
    if trace.rewriters:
        tried = sum(total.tried for total in unused)
        spent = seconds_text(sum(total.own for total in unused))
        lines += [
            "",
            f"never fired: {len(trace.never_fired)} of {len(trace.rewriters)} node rewriters; "
            f"{len(unused)} of them were tried, {tried} times, in {spent}",
        ]
        rows = [[t.name, seconds_text(t.own), str(t.tried)] for t in unused[:_SHOWN_UNUSED]]
        lines += _table(["name", "own", "tried"], rows) if rows else []
        if len(unused) > _SHOWN_UNUSED:
            lines.append(f"  and {len(unused) - _SHOWN_UNUSED} more: see Trace.never_fired")
    return "\n".join(lines)


def difference_text(diff: Difference) -> str:
    """Return tables of the changes from one trace to the other."""
    sums, sums_after = call_totals(diff.before), call_totals(diff.after)
    rows = []
    for what, before in sums.items():
        after = sums_after[what]
        if isinstance(before, float):
            ratio = f"{after / before:.2f}x" if before else ""
            rows.append([what, seconds_text(before), seconds_text(after), ratio])
        else:
            rows.append([what, str(before), str(after), f"{after - before:+d}"])
    lines = ["all calls", *_table(["", "before", "after", "change"], rows)]
    for title, pairs, counts in (
        ("passes", diff.passes, ("runs",)),
        ("node rewriters", diff.rewriters, ("tried", "fired")),
    ):
        rows = [_change(name, first, second, counts) for name, first, second in pairs]
        lines += ["", f"{title}, by change of their own time"]
        headings = ["name", "own before", "after", "change", *counts, "nodes created", "removed"]
        lines += _table(headings, rows[:_SHOWN_CHANGES])
        if len(rows) > _SHOWN_CHANGES:
            lines.append(f"  and {len(rows) - _SHOWN_CHANGES} more")
        for side, missing in (("before", 1), ("after", 2)):
            only = [pair[0] for pair in pairs if pair[missing] is None]
            if only:
                lines.append(f"  not {side}: {', '.join(sorted(only))}")
    return "\n".join(lines)


def _change(name: str, before: Any, after: Any, counts: Sequence[str]) -> list[str]:
    def of(total: Any, what: str) -> Any:
        return 0 if total is None else getattr(total, what)

    seconds = of(after, "own") - of(before, "own")
    sign = "+" if seconds >= 0 else "-"
    return [
        name,
        seconds_text(of(before, "own")) if before is not None else "",
        seconds_text(of(after, "own")) if after is not None else "",
        f"{sign}{seconds_text(abs(seconds))}",
        *(
            str(of(before, what))
            if of(before, what) == of(after, what)
            else f"{of(before, what)} -> {of(after, what)}"
            for what in (*counts, "created", "removed")
        ),
    ]


def _summary(trace: Recording) -> str:
    seconds = sum(call.seconds for call in trace.calls)
    rewriting = sum(call.rewriting for call in trace.calls)
    linking = sum(call.linking for call in trace.calls)
    other = seconds_text(max(0.0, seconds - rewriting - linking))
    n = len(trace.calls)
    return (
        f"{n} {'call' if n == 1 else 'calls'} of pytensor.function in {seconds_text(seconds)}: "
        f"rewriting {seconds_text(rewriting)}, linking {seconds_text(linking)}, other {other}"
    )


def _call_lines(number: int, call: TracedCall) -> list[str]:
    head = (
        f"call {number}: {call_title(call)}: {seconds_text(call.seconds)}, "
        f"rewriting {seconds_text(call.rewriting)}, linking {seconds_text(call.linking)}"
        f"{' to machine code' if call.native else ''}"
    )
    # Nodes are counted only where passes ran.
    if call.inner or call.cached is None:
        head += (
            f"; nodes {call.nodes_before} -> {call.nodes_after}, "
            f"{call.created} created, {call.removed} thrown away"
        )
    lines = [head]
    if call.error is not None:
        lines.append(f"  raised {call.error}")
    if call.cached is not None:
        lines.append(f"  {cached_text(call.cached)}")
    rows: list[list[str]] = []
    quiet: list[TracedPass] = []
    small = 0
    for each in call.inner:
        if isinstance(each, TracedCall) and each.seconds < _NOTABLE * call.seconds:
            small += 1
            continue
        _pass_rows(each, call.rewriting, 0, rows, quiet)
    headings = ["pass", "time", "own", "nodes", "created", "thrown away", "rounds", "fired/tried"]
    lines += _table(headings, rows) if rows else []
    if quiet:
        rest = seconds_text(sum(each.own for each in quiet))
        lines.append(f"  and {len(quiet)} passes that changed nothing, in {rest}")
    if small:
        lines.append(f"  and {small} calls of less than {_NOTABLE:.0%}, made by linking")
    return lines


def _pass_rows(
    each: TracedPass | TracedCall,
    whole: float,
    depth: int,
    rows: list[list[str]],
    quiet: list[TracedPass],
) -> None:
    indent = "  " * depth
    if isinstance(each, TracedCall):
        title = f"{indent}call {call_title(each)}"
        nodes = f"{each.nodes_before} -> {each.nodes_after}"
        rows.append([title, seconds_text(each.seconds), "", nodes, "", "", "", ""])
        return
    if each.requirements >= _NOTABLE * whole:
        rows.append([f"{indent}(features asked for)", seconds_text(each.requirements), *6 * [""]])
    is_quiet = not (each.created or each.removed or each.error)
    if is_quiet and each.seconds < _NOTABLE * whole:
        quiet.append(each)
        return
    fired = [rewriter.fired for rewriter in each.rewriters if rewriter.group is None]
    tried = [rewriter.tried for rewriter in each.rewriters if rewriter.group is None]
    rows.append(
        [
            f"{indent}{each.name}"
            + (f" x{each.runs}" if each.runs > 1 else "")
            + (f" in {each.within}" if each.within else ""),
            seconds_text(each.seconds),
            seconds_text(each.alone),
            f"{each.nodes_before} -> {each.nodes_after}" if each.runs == 1 else "",
            str(each.created),
            str(each.removed),
            str(len(each.rounds)) if each.rounds else "",
            f"{_sum_text(fired)}/{_sum_text(tried)}" if fired else "",
        ]
    )
    if each.error is not None:
        rows.append([f"{indent}  raised {each.error}", *7 * [""]])
    for inner in each.inner:
        # Small summed items are omitted.
        if each.kind != "SequentialGraphRewriter" and inner.seconds < _NOTABLE * whole:
            continue
        _pass_rows(inner, whole, depth + 1, rows, quiet)


def call_title(call: TracedCall) -> str:
    """Return a title for a call, on one line."""
    file, _, line = (call.where or "").rpartition(":")
    where = f"{os.path.basename(file)}:{line}" if file else ""
    named = [part for part in (call.name, where and f"at {where}") if part]
    thread = [] if call.thread == "MainThread" else [f"in {call.thread}"]
    return " ".join([*(named or ["a function"]), *thread])


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return aligned lines, with the first column to the left and the others to the right."""
    cells = [list(headings), *([_shortened(row[0]), *row[1:]] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    lines = []
    for row in cells:
        first = row[0].ljust(widths[0])
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join(["", first, *rest]).rstrip())
    return lines


def _shortened(name: str) -> str:
    if len(name) <= _SHOWN_LETTERS:
        return name
    return f"{name[: _SHOWN_LETTERS - 3]}..."


def seconds_text(value: float) -> str:
    """Format a time in a suitable unit."""
    if value >= 1:
        return f"{value:.2f} s"
    if value >= 1e-3:
        return f"{value * 1e3:.1f} ms"
    return f"{value * 1e6:.0f} us"


def _sum_text(numbers: list[int | None]) -> str:
    return "?" if None in numbers else str(sum(number or 0 for number in numbers))
