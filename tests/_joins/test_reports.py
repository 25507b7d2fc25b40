"""Reports say what became of joins."""

import logging
import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.debug.debugmode import DebugMode
from pytensor.compile.mode import Mode

import pytensor_fuse
from pytensor_fuse._joins.plans import JoinReason
from pytensor_fuse._joins.reports import JoinsKnown, explain_joins
from support.joins.outcomes import MODES
from support.switching import switched

pytestmark = pytest.mark.usefixtures("joins_on")

x, y, z = pt.vectors("xyz")


def test_reports_say_why():
    out = pt.concatenate([x * 2 + 1, y, pt.exp(x)])
    [report] = explain_joins(pytensor.function([x, y], out, mode="CVM"))
    assert report.eliminated
    assert "2 of 3 streams written" in str(report)
    assert "stream 1 is copied" in str(report)


@pytest.mark.parametrize("mode", MODES)
def test_vectors_of_numbers_are_reported(mode):
    a, b = pt.scalars("ab")
    f = pytensor.function([a, b], pt.stack([pt.exp(a) * 2, pt.tanh(b)]), mode=mode)
    assert [report.reason for report in explain_joins(f)] == [JoinReason.SCALARS]


PYTHON = Mode("py", "fast_run")


@pytest.mark.parametrize("other", [None, 3, "x", x, [x]], ids=lambda each: type(each).__name__)
def test_what_is_no_function_is_named(other):
    with pytest.raises(TypeError, match=f"compiled function.*{type(other).__name__}"):
        explain_joins(other)


def joined():
    large = pt.vector("large", shape=(5000,))
    return [large, y], pt.concatenate([large * 2 + 1, y])


@pytest.mark.parametrize("times", range(2))
@pytest.mark.parametrize("mode", ["CVM", PYTHON], ids=["C", "Python"])
def test_the_answer_says_what_is_known(mode, times):
    """No joins, the pass not run, and not known are three things; also from the cache."""
    inputs, out = joined()
    f = pytensor.function(inputs, out, mode=mode)
    assert len(explain_joins(f)) == 1
    assert explain_joins(f).known is JoinsKnown.PASS_RAN
    assert explain_joins(f.maker.fgraph) == explain_joins(f)
    for other in (f.copy(), f.maker.fgraph.clone()):
        assert explain_joins(other) == ()
        assert explain_joins(other).known is JoinsKnown.UNKNOWN
        assert "is a copy" in str(explain_joins(other))

    without = pytensor.function([x], pt.exp(x) * 2, mode=mode)
    assert explain_joins(without) == ()
    assert explain_joins(without).known is JoinsKnown.PASS_RAN
    assert str(explain_joins(without)) == "there are no joins"

    with switched(joins=False):
        kept = pytensor.function(inputs, out, mode=mode)
    assert explain_joins(kept) == ()
    assert explain_joins(kept).known is JoinsKnown.NOT_RUN
    assert "has not run" in str(explain_joins(kept))
    assert explain_joins(kept.copy()).known is JoinsKnown.UNKNOWN


def test_what_was_unpickled():
    inputs, out = joined()
    f = pytensor.function(inputs, out, mode="CVM")
    assert explain_joins(f)[0].eliminated
    again = pickle.loads(pickle.dumps(f))
    # The pass has run once more, over what had been eliminated before.
    assert explain_joins(again).known is JoinsKnown.UNKNOWN
    reports = explain_joins(f)
    assert pickle.loads(pickle.dumps(reports)) == reports
    assert pickle.loads(pickle.dumps(reports)).known is reports.known


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_written_into_a_join_that_is_kept(mode):
    a = pt.vector("a", shape=(3,))
    shared = pt.exp(x) + 1
    outs = [
        pt.concatenate([a * 2, pt.exp(a)]),
        pt.concatenate([x * 2, y]),
        [pt.concatenate([shared, y * 2 + 1]), shared],
    ]
    found = [
        explain_joins(pytensor.function([a, x, y], out, mode=mode, on_unused_input="ignore"))
        for out in outs
    ]
    kept = [report for reports in found for report in reports if not report.eliminated]
    assert kept
    for report in kept:
        assert JoinReason.WRITTEN not in report.streams
        assert "written into the result" not in str(report)
    if mode == "NUMBA":
        assert JoinReason.KEPT in kept[-1].streams


@pytest.mark.parametrize("features", [{}, {"fusion": False}], ids=["all", "no fusion"])
def test_debug_mode_warns_of_nothing_that_stock_does_not(features, caplog):
    z = pt.vector("z")
    outs = [
        pt.concatenate([x * 2 + 1, y, pt.exp(z) - 1]),
        pt.zeros(150)[:50].set(pt.exp(x) * 2),
        pt.concatenate([pt.zeros(3), x * 2]),
    ]
    values = [np.linspace(0.1, 1, 50)] * 3
    said = {}
    for name, flag in (("ours", True), ("stock", False)):
        caplog.clear()
        with switched(flag, **(features if flag else {})):
            f = pytensor.function([x, y, z], outs, mode=DebugMode(), on_unused_input="ignore")
            with caplog.at_level(logging.WARNING, "pytensor.compile.debugmode"):
                results = f(*values)
        said[name] = [record.getMessage() for record in caplog.records]
        assert len(results) == 3
        if flag:
            assert any(report.eliminated for report in explain_joins(f))
    assert [text for text in said["ours"] if text not in said["stock"]] == []


def test_the_log_of_debug_mode_says_all_else(caplog):
    log = logging.getLogger("pytensor.compile.debugmode")
    with caplog.at_level(logging.DEBUG, log.name):
        text = "Optimization Warning: input idx 0 marked as destroyed was not changed for node '%s'"
        log.warning(text, "Mine{}(x)")
        log.warning("Stride mode of WriteJoin{axis=0}")
        log.warning(text, "WriteJoin{axis=0}(x)")
        with pytensor_fuse.enabled(False):
            log.warning(text + "!", "WriteJoin{axis=1}(x)")
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3
    assert not any("axis=0}(x)" in each for each in said)
