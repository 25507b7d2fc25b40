"""What a trace says of what fails."""

from __future__ import annotations

from typing import Any

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting import basic
from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    SequentialNodeRewriter,
    in2out,
    node_rewriter,
)

from pytensor_fuse import trace as trace_rewrites
from pytensor_fuse.reports import Trace
from support.traced import PYTHON, Counting, chain, rewrite, rewriter_of


def test_the_body_raises() -> None:
    x = pt.vector("x")
    with trace_rewrites() as trace, pytest.raises(ZeroDivisionError):
        raise_after(lambda: pytensor.function([x], pt.exp(x), mode=PYTHON))
    assert len(trace.calls) == 1
    held: list[Trace] = []
    with pytest.raises(ZeroDivisionError):
        trace_and_raise(held, lambda: pytensor.function([x], pt.exp(x), mode=PYTHON))
    assert len(held[0].calls) == 1


def raise_after(run: Any) -> None:
    run()
    raise ZeroDivisionError


def trace_and_raise(held: list[Trace], run: Any) -> None:
    with trace_rewrites() as trace:
        held.append(trace)
        raise_after(run)


def test_a_call_that_fails_before_rewriting() -> None:
    x, y = pt.vector("x"), pt.vector("y")
    with trace_rewrites() as trace:
        with pytest.raises(pytensor.graph.utils.MissingInputError):
            pytensor.function([x], x + y, mode=PYTHON)
        pytensor.function([x], x + 1, mode=PYTHON, name="good")
    assert [call.error is None for call in trace.calls] == [False, True]
    assert trace.calls[0].error.startswith("MissingInputError: ")
    assert trace.calls[0].inner == ()
    assert "raised MissingInputError" in str(trace)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("kind", ["in2out", "equilibrium"])
def test_a_rewriter_that_fails(grouped: bool, kind: str) -> None:
    counting = Counting(2)

    @node_rewriter([pt.neg])
    def fails(fgraph: FunctionGraph, node: Any) -> None:
        if counting.tried >= 4:
            raise AssertionError("why")

    rewriters = [counting.rewriter("ours", [pt.exp]), fails]
    group = SequentialNodeRewriter(*rewriters) if grouped else None
    if kind == "equilibrium":
        passes = [EquilibriumGraphRewriter([group] if group else rewriters, max_use_ratio=10)]
    else:
        passes = [in2out(one, failure_callback=None) for one in ([group] if group else rewriters)]
    with pytest.raises(AssertionError, match="why"), trace_rewrites() as trace:
        rewrite(chain(6), *passes)
    failed = [each for each in trace.all_passes() if each.error]
    assert failed
    assert {each.error for each in failed} == {"AssertionError: why"}
    (ours,) = [r for each in trace.all_passes() for r in each.rewriters if r.name == "ours"]
    assert ours.tried == counting.tried
    is_lost = kind == "equilibrium" and not grouped
    assert ours.fired == (None if is_lost else counting.offered)
    assert rewriter_of(trace, "ours").is_whole is not is_lost
    assert "ours" not in {total.name for total in trace.never_fired}
    trace.to_dict()
    trace.to_html()
    str(trace)


class SpeechlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("first\nsecond"), "ValueError: first"),
        (ValueError(), "ValueError: "),
        (ValueError("x" * 10**6), f"ValueError: {'x' * 300}"),
        (SpeechlessError(), "SpeechlessError: (its text cannot be made)"),
        (KeyboardInterrupt(), "KeyboardInterrupt: "),
    ],
)
def test_errors_of_passes(error: BaseException, text: str) -> None:
    @basic.graph_rewriter
    def fails(fgraph: FunctionGraph) -> None:
        raise error

    with trace_rewrites() as trace, pytest.raises(type(error)):
        rewrite(chain(1), fails)
    assert {each.error for each in trace.all_passes()} == {text}


def test_failures_that_pytensor_passes_over() -> None:
    @node_rewriter([pt.exp])
    def fails(fgraph: FunctionGraph, node: Any) -> None:
        raise ValueError("why")

    def ignore(*arguments: Any) -> None:
        pass

    with trace_rewrites() as trace:
        rewrite(
            chain(3),
            in2out(fails, failure_callback=ignore),
            EquilibriumGraphRewriter([fails], ignore, max_use_ratio=10),
        )
    total = rewriter_of(trace, "fails")
    assert (total.tried, total.fired) == (6, 0)
