"""Traces for other programs: speedscope, and what shows trace events."""

from __future__ import annotations

import json
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pytensor_fuse import trace as trace_rewrites
from pytensor_fuse._trace.bars import bars_of, start_of, width_of
from pytensor_fuse.reports import Trace
from support.traced import compiled, everything, regression


def assert_speedscope(text: str) -> list[dict[str, Any]]:
    """Check a file by speedscope's schema and its importer's demands; return the profiles."""
    data = json.loads(text)
    assert data["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(data) <= {"$schema", "name", "exporter", "activeProfileIndex", "shared", "profiles"}
    assert isinstance(data["name"], str)
    assert isinstance(data["exporter"], str)
    frames = data["shared"]["frames"]
    for frame in frames:
        assert set(frame) <= {"name", "file", "line", "col"}
        assert isinstance(frame["name"], str)
    for profile in data["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "events"}
        assert profile["type"] == "evented"
        assert profile["unit"] in ("none", "nanoseconds", "microseconds", "milliseconds", "seconds")
        assert isinstance(profile["name"], str)
        last, opened = profile["startValue"], []
        for event in profile["events"]:
            assert set(event) == {"type", "frame", "at"}
            assert 0 <= event["frame"] < len(frames)
            # In order, and the last that was opened is closed first.
            assert last <= event["at"] <= profile["endValue"]
            last = event["at"]
            if event["type"] == "O":
                opened.append(event["frame"])
            else:
                assert event["type"] == "C"
                assert opened.pop() == event["frame"]
        assert opened == []
    return [
        {**p, "names": {frames[e["frame"]]["name"] for e in p["events"]}} for p in data["profiles"]
    ]


def assert_chrome(text: str) -> tuple[dict[int, str], list[dict[str, Any]]]:
    """Check a file of trace events; return the threads' names, and the events with a duration."""
    data = json.loads(text)
    assert set(data) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert data["displayTimeUnit"] in ("ms", "ns")
    threads: dict[int, str] = {}
    complete: list[dict[str, Any]] = []
    for event in data["traceEvents"]:
        assert {"ph", "name", "pid", "tid", "args"} <= set(event)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert isinstance(event["args"]["name"], str)
            if event["name"] == "thread_name":
                threads[event["tid"]] = event["args"]["name"]
            continue
        assert event["ph"] == "X"
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        complete.append(event)
    for thread in threads:
        # Those of a thread are within each other, or apart.
        ends: list[float] = []
        for event in (each for each in complete if each["tid"] == thread):
            start, end = event["ts"], event["ts"] + event["dur"]
            while ends and ends[-1] <= start + 1e-6:
                ends.pop()
            assert not ends or end <= ends[-1] + 1e-3
            ends.append(end)
    return threads, complete


def test_speedscope(trace: Trace) -> None:
    profiles = assert_speedscope(trace.to_speedscope())
    assert [profile["name"] for profile in profiles] == [
        "MainThread",
        "outside calls of pytensor.function",
    ]
    first, outside = profiles
    names = {
        each.name for call in trace.calls for each in everything(call) if hasattr(each, "kind")
    }
    assert {"canonicalize", "composite_elemwise_fusion", "inplace_elemwise"} <= names
    assert {"canonicalize", "linking", "local_mul_canonizer"} <= first["names"]
    assert "linking" not in outside["names"]
    # A call is as long as the trace says, and where it was.
    at = {event["at"] for event in first["events"]}
    for call in trace.calls:
        assert min(abs(each - call.began) for each in at) < 1e-9
        assert min(abs(each - call.began - call.seconds) for each in at) < 1e-9


def test_chrome_trace(trace: Trace) -> None:
    threads, events = assert_chrome(trace.to_chrome_trace())
    assert list(threads.values()) == ["MainThread", "outside calls of pytensor.function"]
    calls = [e for e in events if e["cat"] == "call" and e["name"] != "linking"]
    assert len(calls) >= len(trace.calls)
    longest = max(trace.calls, key=lambda call: call.seconds)
    assert max(e["dur"] for e in events) == pytest.approx(longest.seconds * 1e6)
    fired = next(e for e in events if e["name"] == "local_mul_canonizer")
    assert "fired" in fired["args"]["details"]
    # Both forms have the same spans.
    n_opened = sum(
        event["type"] == "O"
        for profile in assert_speedscope(trace.to_speedscope())
        for event in profile["events"]
    )
    assert n_opened == len(events)


def test_threads_have_rows_of_their_own() -> None:
    with trace_rewrites() as trace:
        barrier = threading.Barrier(2)

        def work() -> None:
            barrier.wait()
            compiled(regression())

        threads = [threading.Thread(target=work, name="twin") for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    names = [profile["name"] for profile in assert_speedscope(trace.to_speedscope())]
    rows, _ = assert_chrome(trace.to_chrome_trace())
    assert names == list(rows.values())
    one, other = sorted(trace.calls, key=lambda call: call.began)
    overlap = other.began < one.began + one.seconds
    assert names == (["twin", "twin (2)"] if overlap else ["twin"])


def test_an_empty_trace() -> None:
    with trace_rewrites() as empty:
        pass
    assert assert_speedscope(empty.to_speedscope()) == []
    assert assert_chrome(empty.to_chrome_trace()) == ({}, [])


@pytest.mark.parametrize("name", ["to_html", "to_speedscope", "to_chrome_trace"])
def test_files_hold_what_is_returned(trace: Trace, tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    assert getattr(trace, name)(path) is None
    assert path.read_text(encoding="utf-8") == getattr(trace, name)()
    with pytest.raises(IsADirectoryError):
        getattr(trace, name)(tmp_path)


def test_any_name_can_be_written(trace: Trace, tmp_path: Path) -> None:
    plain = trace.to_dict()
    calls = [{**call, "thread": "\ud800", "name": "\udfff"} for call in plain["calls"]]
    odd = Trace.from_dict({**plain, "calls": calls})
    for name in ("to_speedscope", "to_chrome_trace"):
        getattr(odd, name)(tmp_path / name)
        assert "ud800" in (tmp_path / name).read_text(encoding="utf-8")


def test_bars_are_within_those_above_them(trace: Trace) -> None:
    for each in (*trace.calls, *trace.outside):
        bars = bars_of(each)
        first, end = start_of(each), start_of(each) + width_of(each)
        by_depth: dict[int, list[Any]] = {}
        for n, bar in enumerate(bars):
            assert bar.start >= first - 1e-9
            assert bar.start + bar.width <= end + 1e-6
            above = [
                other
                for other in bars[:n]
                if other.depth in (bar.depth - 1, bar.depth - 2)
                and other.kind != "round"
                and other.start <= bar.start + 1e-4
                and other.start + other.width >= bar.start + bar.width - 1e-4
            ]
            assert above or bar.depth == 0, bar
            by_depth.setdefault(bar.depth, []).append(bar)
        for row in by_depth.values():
            row.sort(key=lambda bar: bar.start)
            for one, after in pairwise(row):
                assert one.start + one.width <= after.start + 1e-4, (one, after)
