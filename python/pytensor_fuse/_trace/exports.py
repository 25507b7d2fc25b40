"""Exports of traces to the formats of profile viewers.

Sources: speedscope's "Importing from custom sources" with its ``file-format-schema.json`` (evented
profiles), https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources; Chromium's
"Trace Event Format" (complete and metadata events), which Perfetto reads, too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytensor_fuse._trace.timeline import timeline, walk

if TYPE_CHECKING:
    from pytensor_fuse._trace.recording import Recording

_TITLE = "Trace of rewriting"
_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope(recording: Recording) -> str:
    """Return the trace in speedscope's format: a profile for each row of the timeline."""
    frames: dict[tuple[str, str], int] = {}
    profiles: list[dict[str, Any]] = []
    for row in timeline(recording):
        events = [
            {
                "type": "O" if begins else "C",
                "frame": frames.setdefault((span.bar.name, span.bar.kind), len(frames)),
                "at": span.start if begins else span.end,
            }
            for span, begins in walk(row.spans)
        ]
        profiles.append(
            {
                "type": "evented",
                "name": row.name,
                "unit": "seconds",
                "startValue": row.spans[0].start,
                "endValue": row.spans[-1].end,
                "events": events,
            }
        )
    return _text(
        {
            "$schema": _SCHEMA,
            "name": _TITLE,
            "exporter": "pytensor_fuse@{pytensor_fuse}".format(**recording.versions),
            "shared": {"frames": [{"name": name} for name, _ in frames]},
            "profiles": profiles,
        }
    )


def chrome_trace(recording: Recording) -> str:
    """Return the trace as trace events: a thread for each row of the timeline."""
    events: list[dict[str, Any]] = [_named("process_name", 0, _TITLE)]
    for thread, row in enumerate(timeline(recording)):
        events.append(_named("thread_name", thread, row.name))
        for span, begins in walk(row.spans):
            if begins:
                events.append(
                    {
                        "ph": "X",
                        "name": span.bar.name,
                        "cat": span.bar.kind,
                        # Microseconds.
                        "ts": span.start * 1e6,
                        "dur": (span.end - span.start) * 1e6,
                        "pid": 0,
                        "tid": thread,
                        "args": {"details": span.bar.details},
                    }
                )
    return _text(
        {"traceEvents": events, "displayTimeUnit": "ms", "otherData": dict(recording.versions)}
    )


def _named(what: str, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": 0, "tid": thread, "args": {"name": name}}


def _text(data: dict[str, Any]) -> str:
    # ASCII only: names may contain lone surrogates, which no encoding represents.
    return json.dumps(data, separators=(",", ":"), allow_nan=False)
