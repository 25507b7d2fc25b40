"""Traces as their readers use them: other compilers, totals, texts and differences."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

import pytensor_fuse
from pytensor_fuse import trace as trace_rewrites
from pytensor_fuse._trace.records import TracedCall, TracedPass
from pytensor_fuse.reports import Trace
from support.traced import PYTHON, compiled, everything, found, own_times, regression, rewriter_of


def test_enabled_within() -> None:
    with pytensor_fuse.enabled(False), trace_rewrites() as trace:
        compiled(regression())
        pytensor_fuse.enable()
        compiled(regression())
    runs = [found(_passes(call), "composite_elemwise_fusion") for call in trace.calls]
    assert [run.removed > 0 for run in runs] == [True, True]


def _passes(call: TracedCall) -> list[TracedPass]:
    return [each for each in everything(call) if isinstance(each, TracedPass)]


def test_debug_mode() -> None:
    x = pt.vector("x")
    with trace_rewrites() as trace:
        pytensor.function([x], pt.exp(x) * 1, mode="DebugMode", name="checked")
    (call,) = trace.calls
    assert call.name == "checked"
    assert call.inner


def test_profiled() -> None:
    x = pt.vector("x")
    with trace_rewrites() as trace:
        f = pytensor.function([x], pt.exp(x) * 1, mode=PYTHON, profile=True)
    assert f.profile.rewriting_time > 0
    f.profile.compile_time = f.profile.fct_callcount = 0
    assert len(trace.calls) == 1


def test_pymc() -> None:
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=np.arange(5.0))
    with trace_rewrites() as trace:
        model.logp_dlogp_function(mode=PYTHON, ravel_inputs=True)
        model.compile_logp(mode=PYTHON)
    # Another makes the point to start from.
    assert len(trace.calls) >= 2
    for call in trace.calls:
        assert call.where.startswith(f"{__file__}:")
        assert call.inner
    assert sum(call.nodes_after for call in trace.calls) > 0


@pytest.mark.parametrize(("name", "text"), [(3, "3"), (None, None), ("a\ud800b", "a\ud800b")])
def test_names_of_any_kind(name: Any, text: str | None, tmp_path: Any) -> None:
    x = pt.vector("x")
    with trace_rewrites() as trace:
        pytensor.function([x], x + 1, mode=Mode("py", None), name=name)
    assert trace.calls[0].name == text
    assert str(trace)
    trace.to_html(tmp_path / "trace.html")
    if text is not None:
        shown = text.replace("\ud800", "\\ud800")
        assert shown in (tmp_path / "trace.html").read_text(encoding="utf-8")


def test_text(trace: Trace) -> None:
    text = str(trace)
    (first, *_) = text.splitlines()
    assert first.startswith("2 calls of pytensor.function in ")
    assert "canonicalize" in text
    assert "the slowest 10 by themselves" in text
    assert "never fired: " in text
    assert "outside calls of pytensor.function: " in text
    assert max(len(line) for line in text.splitlines()) < 200


def test_an_empty_trace() -> None:
    with trace_rewrites() as empty:
        assert "open" in repr(empty)
    assert repr(empty).startswith("<Trace: 0 calls")
    assert str(empty).startswith("0 calls of pytensor.function")
    assert empty.slowest() == empty.rewriters == empty.passes == ()
    assert "no call" in empty.to_html() or "<main>" in empty.to_html()
    assert "calls" in str(empty.diff(empty))


def test_an_empty_trace_differs_from_another(trace: Trace) -> None:
    with trace_rewrites() as empty:
        pass
    for diff in (empty.diff(trace), trace.diff(empty)):
        (row,) = [line for line in str(diff).splitlines() if line.startswith("  seconds ")]
        assert "0 us" in row


def test_slowest(trace: Trace) -> None:
    every = trace.slowest(10**6)
    assert [total.own for total in every] == sorted((t.own for t in every), reverse=True)
    assert trace.slowest(3) == every[:3]
    with pytest.raises(ValueError, match="-1"):
        trace.slowest(-1)
    # What is listed adds up to all the time there is, each second once.
    whole = sum(own_times(each) for each in (*trace.calls, *trace.outside))
    features = sum(each.requirements for each in trace.all_passes())
    assert sum(total.own for total in every) == pytest.approx(whole - features, rel=0.02)


def test_one_time_is_said_of_a_thing(trace: Trace) -> None:
    """Of a pass or a node rewriter every list, table and page says the same."""
    passes = {total.name: total for total in trace.passes}
    rewriters = {total.name: total for total in trace.rewriters}
    for total in trace.slowest(10**6):
        assert total in (passes.get(total.name), rewriters.get(total.name))
    for total in trace.never_fired:
        assert total == rewriters[total.name]
    for name, total in passes.items():
        runs = [each for each in trace.all_passes() if each.name == name]
        assert total.own == pytest.approx(sum(each.alone for each in runs))
    # So do the table of a call and the list of what was slowest.
    data = trace.to_dict()
    named = next(call for call in data["calls"] if call["name"] is not None)
    # A pass that has node rewriters must be among the slowest, whatever else took long.
    pending = [named]
    while pending:
        each = pending.pop()
        pending += each["inner"]
        if each.get("name") == "canonicalize":
            each["own"] += 100
            each["seconds"] += 100
    one = Trace.from_dict({**data, "calls": [named], "outside": []})
    runs_of = {total.name: total.runs for total in one.passes}
    table, slowest = str(one).split("the slowest", 1)
    own = {}
    for line in table.splitlines():
        cells = re.split(r"  +", line.strip())
        if len(cells) > 3 and runs_of.get(cells[0]) == 1:
            own[cells[0]] = cells[2]
    listed = [re.split(r"  +", line.strip()) for line in slowest.splitlines()]
    both = [(name, rest[0]) for name, *rest in listed if name in own and "pass" in rest]
    # Which passes are among the slowest is up to the machine.
    assert both
    for name, seconds in both:
        assert seconds == own[name]


def test_the_short_text_says_what_the_long_one_does(trace: Trace) -> None:
    assert repr(trace).removeprefix("<Trace: ").removesuffix(">") == (
        str(trace).splitlines()[0].partition(":")[0].replace(" of pytensor.function", "")
    )


def test_a_notebook_shows_a_trace(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = trace._repr_html_()
    assert shown.startswith("<iframe ")
    assert 'sandbox="allow-scripts"' in shown
    # How large a page is depends on the times: spans that are too short to be seen are left out.
    module = sys.modules[Trace.__module__]
    monkeypatch.setattr(module, "_NOTEBOOK_LETTERS", len(trace.to_html()) - 1)
    large = trace._repr_html_()
    assert "<iframe" not in large
    assert "2 calls of pytensor.function" in large
    assert len(large) < 1e5


def test_diff() -> None:
    made = []
    for excluded in ((), ("local_log_exp", "fusion")):
        with trace_rewrites() as one:
            compiled(regression(), PYTHON.excluding(*excluded))
        made.append(one)
    diff = made[0].diff(made[1])
    missing = [name for name, before, after in diff.passes if after is None]
    assert "elemwise_fusion" in missing
    assert not [name for name, before, after in diff.passes if before is None]
    pairs = {name: (before, after) for name, before, after in diff.rewriters}
    assert set(pairs) == {t.name for one in made for t in one.rewriters}
    for name, (before, after) in pairs.items():
        for one, total in zip(made, (before, after), strict=True):
            assert total is None or total.tried == rewriter_of(one, name).tried
    changes = [
        abs((after.own if after else 0.0) - (before.own if before else 0.0))
        for _, before, after in diff.rewriters
    ]
    assert changes == sorted(changes, reverse=True)
    assert "not after: " in str(diff)
    plain = json.loads(json.dumps(diff.to_dict(), allow_nan=False))
    assert plain["before"]["calls"] == plain["after"]["calls"] == 1
    assert plain["after"]["nodes_after"] == made[1].calls[0].nodes_after
    assert all(change == "+0" for change in _changes(str(made[0].diff(made[0]))))
    with pytest.raises(TypeError, match="not from 3"):
        made[0].diff(3)


def _changes(text: str) -> list[str]:
    rows = [line.split() for line in text.split("\n\n")[0].splitlines()[2:]]
    return [row[-1] for row in rows if row[0] in ("calls", "nodes_before", "nodes_after")]
