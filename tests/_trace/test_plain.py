"""Traces in plain types and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytensor_fuse.reports import Trace


def test_dict(trace: Trace) -> None:
    plain = json.loads(json.dumps(trace.to_dict(), allow_nan=False))
    again = Trace.from_dict(plain)
    assert again.to_dict() == trace.to_dict()
    assert again.calls == trace.calls
    assert again.outside == trace.outside
    assert str(again) == str(trace)
    assert again.to_html() == trace.to_html()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "not a trace of format 1: its format is None"),
        ([], "not a trace of format 1: its format is None"),
        ({"format": 2}, "its format is 2"),
        ({"format": 1, "versions": {}, "seconds": 1.0, "calls": []}, "not a whole trace: KeyError"),
        (
            {"format": 1, "versions": {}, "seconds": 1.0, "calls": [{"inner": []}], "outside": []},
            "not a whole trace: TypeError",
        ),
    ],
)
def test_dicts_that_are_none(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Trace.from_dict(data)


@pytest.mark.parametrize("key", ["calls", "outside"])
@pytest.mark.parametrize("value", [["x"], [None], [{"is": "pass", "inner": ["x"]}]])
def test_malformed_dicts(trace: Trace, key: str, value: Any) -> None:
    with pytest.raises(ValueError, match="not a whole trace"):
        Trace.from_dict({**trace.to_dict(), key: value})
