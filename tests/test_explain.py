"""`explain` and `info`: one page of all parts, and reports of one shape."""

from __future__ import annotations

import json
from typing import Any

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.graph.fg import FunctionGraph

import pytensor_fuse
from pytensor_fuse import explain
from pytensor_fuse.reports import Explanation, Report

PARTS = ["fusion", "native", "joins", "linalg", "cache"]


def compiled() -> pytensor.compile.executor.Function:
    x, y, k = pt.vector("x"), pt.vector("y"), pt.matrix("k")
    joined = pt.concatenate([x * 2 + 1, pt.exp(y) - 1])
    outputs = [joined, pt.linalg.inv(k) @ x, pt.linalg.slogdet(k)[1]]
    return pytensor.function([x, y, k], outputs, mode="FAST_RUN", name="model")


@pytest.fixture(scope="module", params=["function", "graph"])
def explanation(request: pytest.FixtureRequest) -> Explanation:
    if request.param == "function":
        return explain(compiled())
    x = pt.vector("x")
    return explain(FunctionGraph([x], [pt.exp(x) + 1]))


def test_all_parts_are_reports_of_one_shape(explanation: Explanation) -> None:
    reports = list(explanation)
    assert len(reports) == len(PARTS)
    for name, report in zip(PARTS, reports, strict=True):
        assert report is getattr(explanation, name)
        assert isinstance(report, Report)
        assert str(report)
        assert "<" in report._repr_html_()
        assert "format" in json.loads(json.dumps(report.to_dict(), allow_nan=False))
        list(report)
        assert all(f"  {line}" in str(explanation) for line in str(report).splitlines())
    assert isinstance(explanation, Report)
    assert set(json.loads(json.dumps(explanation.to_dict()))) >= set(PARTS)
    assert all(f"<h2>{name}</h2>" in explanation.to_html() for name in PARTS)


def test_one_part_is_that_of_the_whole() -> None:
    f = compiled()
    whole = explain(f)
    assert whole.title.startswith("the function model of ")
    for name in PARTS:
        assert str(explain(f, name)) == str(getattr(whole, name))
    assert [report.eliminated for report in whole.joins] == [True]
    [matrix] = whole.linalg
    assert matrix.factorizations == ("LU",)
    assert explain(f, "linalg", shapes={"k": (3, 3)})[0].rows == 3
    assert explain(f, "joins").to_dict()["known"] == "pass_ran"


def test_a_part_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="no part is called 'speed'; there are fusion, native"):
        explain(compiled(), "speed")


def test_info_says_what_a_bug_report_needs() -> None:
    found = pytensor_fuse.info()
    assert found.versions["pytensor-fuse"] == pytensor_fuse.__version__
    assert found.versions["pytensor"] == pytensor.__version__
    assert set(found.features) == set(pytensor_fuse.status())
    assert found.cache.level == pytensor_fuse.cache.info().level
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["processors"] == found.processors
    for text in ("versions", "processors", "features", "cache", pytensor.__version__):
        assert text in str(found)


def test_a_report_shows_its_text(explanation: Explanation) -> None:
    assert repr(explanation.joins) == str(explanation.joins)
    assert repr(pytensor_fuse.info()) == str(pytensor_fuse.info())


@pytest.mark.parametrize("part", ["joins", ["joins"], 3])
def test_shapes_are_for_matrices(part: Any) -> None:
    x = pt.vector("x")
    f = pytensor.function([x], x + 1, mode=Mode("py", None))
    with pytest.raises(ValueError, match=r"shapes are for the part|no part is called"):
        explain(f, part, shapes={"x": (3,)})  # type: ignore[call-overload]
