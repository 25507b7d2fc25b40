"""Full garbage collections are rare while graphs are rewritten, and as ever afterwards."""

from __future__ import annotations

import ast
import gc
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.compile.rebuild import UnusedInputError
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.link.basic import PerformLinker

import pytensor_fuse
from pytensor_fuse._pytensor import drop_ins, sparse_collections
from pytensor_fuse._pytensor.drop_ins import AroundBody
from pytensor_fuse._pytensor.sources import NoSourceError, definition_of
from pytensor_fuse._pytensor.sparse_collections import TIMES, SparseCollections
from support.processes import run_python


@pytest.fixture(autouse=True)
def before() -> Iterator[tuple[int, int, int]]:
    found = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
    try:
        with pytensor_fuse.enabled(accelerators=["garbage"]):
            yield 701, 11, 12
        assert gc.get_threshold() == (701, 11, 12)
    finally:
        gc.set_threshold(*found)


class Asks(GraphRewriter):
    """Notes the thresholds; and what it is given to do besides."""

    def __init__(self, then: Any = lambda: None) -> None:
        self.then = then
        self.found: list[tuple[int, int, int]] = []
        self.told: list[Any] = []

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        self.found.append(gc.get_threshold())

    def apply(self, fgraph: FunctionGraph, *args: Any, **kwargs: Any) -> Any:
        self.found.append(gc.get_threshold())
        self.told.append((args, kwargs))
        self.then()
        return "profile"


def graph() -> FunctionGraph:
    x = pt.vector("x")
    return FunctionGraph([x], [pt.exp(x)], clone=False)


RARE = 701, 11, 12 * TIMES


def test_while_a_graph_is_rewritten() -> None:
    rewriter = Asks()
    assert rewriter.rewrite(graph(), 1, a=2) == "profile"
    assert rewriter.found == [RARE, RARE]
    assert rewriter.told == [((1,), {"a": 2})]


def compile_and_ask(**options: Any) -> list[tuple[int, int, int]]:
    """Make a function; return the thresholds when it is linked, which is after rewriting."""
    found: list[tuple[int, int, int]] = []

    class Links(PerformLinker):
        def make_thunk(self, *args: Any, **kwargs: Any) -> Any:
            found.append(gc.get_threshold())
            return super().make_thunk(*args, **kwargs)

    x = pt.vector("x")
    pytensor.function([x], [pt.exp(x)], mode=Mode(linker=Links(), optimizer=None), **options)
    return found


def test_while_a_function_is_made() -> None:
    assert compile_and_ask() == [RARE]
    with pytensor_fuse.enabled(accelerators=False):
        assert compile_and_ask() == [(701, 11, 12)]


def test_a_function_that_cannot_be_made() -> None:
    x = pt.vector("x")
    with pytest.raises(UnusedInputError, match="used twice") as caught:
        pytensor.function([x, x], [x])
    # The line is that of the source, and there is no frame in between.
    frames = caught.traceback
    assert len(frames) == 2
    assert "raise UnusedInputError" in str(frames[1].statement)


def test_warnings_name_the_line_of_the_user() -> None:
    with pytest.warns(DeprecationWarning, match="no_default_updates") as caught:
        assert compile_and_ask(no_default_updates=True) == [RARE]
    assert caught[0].filename == __file__


def condition(x: int, y: int) -> bool:
    return x < 1 and y + 1 == len("text")


def around(stock: Any) -> bool:
    """Whether a function gets another body."""
    code = stock.__code__
    patch = AroundBody(stock, sparse_collections.__name__)
    patch.prepare()
    patch.apply()
    assert patch.holds()
    is_another = stock.__code__ is not code
    if is_another:
        assert stock(0, 3)
    patch.undo()
    assert stock.__code__ is code
    return is_another


def test_a_function_without_source_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(code: object, module: str) -> None:
        raise NoSourceError(module)

    assert around(condition)
    monkeypatch.setattr(drop_ins, "definition_of", fail)
    assert not around(condition)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<", ">"),
        ("==", "!="),
        ("and", "or"),
        ("+", "-"),
        ("+ 1", "+ 2"),
        ("< 1", "< True"),
        ("len", "sum"),
        ("text", "other"),
        ("x", "z"),
        (" -> bool:\n", " -> bool:\n\n"),
    ],
)
def test_a_function_whose_file_is_another_by_now_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    stock = definition_of(condition.__code__, __name__)
    assert stock is not None
    text = ast.unparse(stock).replace(old, new)
    definition: Any = ast.increment_lineno(ast.parse(text), stock.lineno - 1).body[0]
    monkeypatch.setattr(drop_ins, "definition_of", lambda code, module: definition)
    assert ast.unparse(stock) != ast.unparse(definition) or "\n" in old
    assert not around(condition)


def test_within_each_other() -> None:
    inner = Asks()
    outer = Asks(lambda: inner(graph()))
    outer(graph())
    assert inner.found == [RARE, RARE]


def test_a_failure() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Asks(fail)(graph())


def test_who_sets_others_keeps_them() -> None:
    try:
        Asks(lambda: gc.set_threshold(5, 6, 7))(graph())
        assert gc.get_threshold() == (5, 6, 7)
    finally:
        gc.set_threshold(701, 11, 12)


def test_who_wants_no_collections_gets_none() -> None:
    gc.set_threshold(0)
    rewriter = Asks()
    found = gc.get_threshold()
    rewriter(graph())
    assert rewriter.found == [found, found]
    gc.set_threshold(701, 11, 12)


def test_off() -> None:
    rewriter = Asks()
    with pytensor_fuse.enabled(accelerators=False):
        rewriter(graph())
    assert rewriter.found == [(701, 11, 12)] * 2


def test_switched_off_meanwhile() -> None:
    Asks(lambda: pytensor_fuse.enable(accelerators=False))(graph())
    assert gc.get_threshold() == (701, 11, 12)


def test_threads_that_overlap() -> None:
    begun, done = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert done.wait(10)

    thread = threading.Thread(target=lambda: Asks(wait)(graph()))
    thread.start()
    assert begun.wait(10)
    Asks()(graph())
    assert gc.get_threshold() == RARE
    done.set()
    thread.join()


def test_what_ends_without_having_begun() -> None:
    collections = SparseCollections()
    user = object()
    collections.begin(user)
    collections.end(object())
    assert gc.get_threshold() == RARE
    collections.end(user)
    assert gc.get_threshold() == (701, 11, 12)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_child_of_another_thread_is_not_left_with_it() -> None:
    run_python(
        """
        import gc, os, threading, warnings
        import pytensor_fuse
        from pytensor_fuse._pytensor.sparse_collections import SparseCollections

        warnings.simplefilter("ignore", DeprecationWarning)
        before = gc.get_threshold()
        collections = SparseCollections()
        begun, done = threading.Event(), threading.Event()

        def work():
            user = object()
            collections.begin(user)
            begun.set()
            done.wait(10)
            collections.end(user)

        thread = threading.Thread(target=work)
        thread.start()
        assert begun.wait(10)
        assert gc.get_threshold() != before

        def forked(check):
            child = os.fork()
            if not child:
                os._exit(0 if check() else 1)
            return os.waitpid(child, 0)[1] == 0

        assert forked(lambda: gc.get_threshold() == before)
        assert gc.get_threshold() != before
        # This thread's own stays, until it ends.
        user = object()
        collections.begin(user)
        assert forked(lambda: gc.get_threshold() != before)
        assert forked(lambda: not collections.end(user) and gc.get_threshold() == before)
        collections.end(user)
        done.set()
        thread.join()
        assert gc.get_threshold() == before
        """
    )
