"""Bars of the calls, passes and node rewriters of a trace, as profile viewers draw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytensor_fuse._trace.records import TracedCall, TracedPass, TracedRewriter
from pytensor_fuse._trace.text import call_title, seconds_text

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Bar:
    """A rectangle of a flame chart: seconds from its left edge, and rows from its top."""

    name: str
    depth: int
    start: float
    width: float
    kind: str
    details: str


def bars_of(each: TracedPass | TracedCall) -> list[Bar]:
    """Return the bars of one outermost call or pass, from its start within the trace.

    Calls, the passes of a sequence, and rounds are at their times. Summed items, which are node
    rewriters and clean-up passes, are side by side within their parent, the longest first.
    """
    bars: list[Bar] = []
    _draw(each, start_of(each), 0, bars)
    return bars


def start_of(each: TracedPass | TracedCall) -> float:
    """Return the start of a call, or of a pass including the features that it requires."""
    return each.began - (each.requirements if isinstance(each, TracedPass) else 0.0)


def width_of(each: TracedPass | TracedCall) -> float:
    """Return the seconds of a call, or of a pass including the features that it requires."""
    return each.seconds + (each.requirements if isinstance(each, TracedPass) else 0.0)


def _draw(each: TracedPass | TracedCall, start: float, depth: int, bars: list[Bar]) -> None:
    """Draw a call or pass from ``start``, with its contents."""
    if isinstance(each, TracedPass):
        _draw_pass(each, start, depth, bars, packed=False)
        return
    bars.append(Bar(call_title(each), depth, start, each.seconds, "call", _call_details(each)))
    linking = start + each.seconds - each.linking
    if each.linking:
        bars.append(Bar("linking", depth + 1, linking, each.linking, "call", ""))
    for inner in each.inner:
        is_linked = isinstance(inner, TracedCall)
        at = start + start_of(inner) - each.began
        _draw(inner, at, depth + 1 + is_linked, bars)


def _draw_pass(
    each: TracedPass, start: float, depth: int, bars: list[Bar], *, packed: bool
) -> None:
    if each.requirements:
        details = f"Attached before {each.name}: the features that its passes require."
        bar = Bar("features asked for", depth, start, each.requirements, "other", details)
        bars.append(bar)
        start += each.requirements
    bars.append(Bar(_pass_name(each), depth, start, each.seconds, _kind(each), _details(each)))
    depth += 1
    if each.kind == "SequentialGraphRewriter":
        at = start
        for inner in each.inner:
            if not packed:
                at = start + start_of(inner) - each.began
            _draw_inner(inner, at, depth, bars, packed=packed)
            at += width_of(inner)
        return
    if each.rounds:
        for number, one in enumerate(each.rounds, 1):
            at = start + one.began - each.began
            details = f"{one.nodes} nodes, {one.fired} changes"
            bars.append(Bar(f"round {number}", depth, at, one.seconds, "round", details))
        depth += 1
    tops = [rewriter for rewriter in each.rewriters if rewriter.group is None]
    direct = [inner for inner in each.inner if _within(inner, tops) is None]
    parts: list[TracedRewriter | TracedPass | TracedCall] = [*tops, *direct]
    at = start
    for part in sorted(parts, key=lambda part: -_part_width(part)):
        if isinstance(part, TracedRewriter):
            _draw_rewriter(part, each, at, depth, bars)
        else:
            _draw_inner(part, at, depth, bars, packed=True)
        at += _part_width(part)


def _draw_inner(
    inner: TracedPass | TracedCall, at: float, depth: int, bars: list[Bar], *, packed: bool
) -> None:
    if isinstance(inner, TracedPass):
        _draw_pass(inner, at, depth, bars, packed=packed or inner.runs > 1)
    else:
        _draw(inner, at, depth, bars)


def _draw_rewriter(
    rewriter: TracedRewriter, owner: TracedPass, at: float, depth: int, bars: list[Bar]
) -> None:
    seconds = rewriter.seconds or 0.0
    if not seconds:
        return
    kind = "fired" if rewriter.fired else "idle"
    bars.append(Bar(rewriter.name, depth, at, seconds, kind, _rewriter_details(rewriter, owner)))
    members = [each for each in owner.rewriters if each.group == rewriter.name]
    for member in sorted(members, key=lambda each: -(each.seconds or 0.0)):
        _draw_rewriter(member, owner, at, depth + 1, bars)
        at += member.seconds or 0.0
    for inner in owner.inner:
        if isinstance(inner, TracedPass) and inner.within == rewriter.name:
            _draw_inner(inner, at, depth + 1, bars, packed=True)
            at += width_of(inner)


def _within(
    inner: TracedPass | TracedCall, rewriters: Iterable[TracedRewriter]
) -> TracedRewriter | None:
    if isinstance(inner, TracedCall):
        return None
    return next((each for each in rewriters if each.name == inner.within and each.seconds), None)


def _part_width(part: TracedRewriter | TracedPass | TracedCall) -> float:
    return part.seconds or 0.0 if isinstance(part, TracedRewriter) else width_of(part)


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
    lines = [f"{each.kind}; {seconds_text(each.seconds)}, own {seconds_text(each.alone)}"]
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
