"""Conversion of recordings to plain types, as in JSON, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor_fuse._trace.difference import Difference, call_totals
from pytensor_fuse._trace.recording import Recording
from pytensor_fuse._trace.records import (
    PassTotal,
    RewriterTotal,
    TracedCall,
    TracedPass,
    TracedRewriter,
    TracedRound,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


# The version of the format of the dicts.
_FORMAT = 1


def recording_to_dict(recording: Recording) -> dict[str, Any]:
    """Return a whole recording in plain types."""
    return {
        "format": _FORMAT,
        "versions": dict(recording.versions),
        "clock": "perf_counter",
        "seconds": recording.seconds,
        "calls": [_as_dict(each) for each in recording.calls],
        "outside": [_as_dict(each) for each in recording.outside],
    }


def recording_from_dict(data: Mapping[str, Any]) -> Recording:
    """Return the recording that `recording_to_dict` was called with, in any process.

    Raises
    ------
    ValueError
        If ``data`` is not from `recording_to_dict`, or from an incompatible version.
    """
    found = data.get("format") if hasattr(data, "get") else None
    if found != _FORMAT:
        raise ValueError(f"this is not a trace of format {_FORMAT}: its format is {found!r}")
    try:
        return Recording(
            seconds=float(data["seconds"]),
            versions=dict(data["versions"]),
            calls=tuple(_call_of(each) for each in data["calls"]),
            outside=tuple(_pass_of(each) for each in data["outside"]),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"this is not a whole trace: {type(error).__name__} {error}") from error


def difference_to_dict(difference: Difference) -> dict[str, Any]:
    """Return the pairs of a difference in plain types."""

    def plain(total: PassTotal | RewriterTotal | None) -> dict[str, Any] | None:
        return None if total is None else dict(vars(total))

    def rows(
        pairs: Iterable[
            tuple[str, PassTotal | RewriterTotal | None, PassTotal | RewriterTotal | None]
        ],
    ) -> list[dict[str, Any]]:
        return [{"name": n, "before": plain(a), "after": plain(b)} for n, a, b in pairs]

    return {
        "format": _FORMAT,
        "before": call_totals(difference.before),
        "after": call_totals(difference.after),
        "passes": rows(difference.passes),
        "rewriters": rows(difference.rewriters),
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
