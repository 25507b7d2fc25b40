"""What is registered with PyTensor is asked once, and looked at each time: no change is missed."""

from __future__ import annotations

from contextlib import contextmanager

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import optdb
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.graph.rewriting.db import RewriteDatabase, TopoDB

import pytensor_fuse
from _cache.test_twins import registered as registered_rewriter
from pytensor_fuse._cache.key import environment as surroundings
from pytensor_fuse._cache.key.registration_digest import registration_digest
from pytensor_fuse._pytensor.rewriting.environment import Watch, registered
from support.cached import compiled


def nothing(fgraph, node):
    return None


def databases():
    found = [optdb]
    for database in found:
        for rewriters in vars(database)["__db__"].values():
            found += [
                one
                for one in rewriters
                if isinstance(one, RewriteDatabase) and not any(one is known for known in found)
            ]
    return found


@contextmanager
def position():
    name = next(iter(optdb.__position__))
    was = optdb.__position__[name]
    optdb.__position__[name] = was + 0.001
    yield
    optdb.__position__[name] = was


@contextmanager
def tag():
    # Only what has its name alone takes tags: of "BlasOpt", say, a class has the name, too.
    name = next(name for name in optdb.__position__ if len(vars(optdb)["__db__"][name]) == 1)
    optdb.add_tags(name, "a_tag_of_a_test")
    yield
    optdb.remove_tags(name, "a_tag_of_a_test")


@contextmanager
def other_order():
    """The same under a tag, the first one last."""
    tagged = [
        rewriters
        for database in databases()
        if "__position__" not in vars(database)
        for rewriters in vars(database)["__db__"].values()
    ]
    rewriters = max(tagged, key=len)
    was = list(rewriters)
    rewriters.discard(was[0])
    rewriters.add(was[0])
    yield
    for one in was:
        rewriters.discard(one)
        rewriters.add(one)


@contextmanager
def other_class():
    rewriter = optdb["canonicalize"]
    stock = type(rewriter)
    rewriter.__class__ = type("Other", (stock,), {})
    yield
    rewriter.__class__ = stock


@contextmanager
def inner():
    """A rewriter of a database in a database."""
    with registered_rewriter("a_rewriter_of_a_test", nothing):
        yield


@contextmanager
def simplifier():
    found = [
        one
        for database in databases()
        for rewriters in vars(database)["__db__"].values()
        for one in rewriters
        if getattr(one, "external_simplifiers", None) is not None
    ]
    found[0].external_simplifiers.append(("of a test", nothing))
    yield
    found[0].external_simplifiers.pop()


@contextmanager
def passed_on():
    """A rewriter of a database that is registered nowhere: another one passes queries on to it."""
    outer = next(one for one in databases() if isinstance(one, TopoDB))
    rewriter = node_rewriter(None)(nothing)
    outer.db.register("a_rewriter_of_a_test", rewriter, "fast_run")
    yield
    for tag, rewriters in list(vars(outer.db)["__db__"].items()):
        if rewriter in rewriters:
            rewriters.remove(rewriter)
            if not rewriters:
                del vars(outer.db)["__db__"][tag]
    outer.db._names.remove("a_rewriter_of_a_test")
    vars(outer.db).get("__position__", {}).pop("a_rewriter_of_a_test", None)


CHANGES = [position, tag, other_order, other_class, inner, passed_on, simplifier]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_whatever_is_told_apart_is_seen(change):
    watch, items = Watch(), registered()
    assert watch.is_unchanged()
    before = surroundings.registrations()
    with change():
        assert registered() != items
        assert not watch.is_unchanged()
        assert surroundings.registrations() is not before
        assert Watch().is_unchanged()
    assert registered() == items
    assert surroundings.registrations() is before


def test_a_rewriter_in_a_database_that_is_passed_on_to():
    x = pt.vector("x")
    compiled([x], pt.exp(x) + 1)
    with passed_on():
        compiled([x], pt.exp(x) + 1)
        assert pytensor_fuse.cache.info().misses == 2
    compiled([x], pt.exp(x) + 1)
    assert pytensor_fuse.cache.info().hits == 1


def test_asking_for_a_tag_that_is_not_there_changes_nothing():
    before = surroundings.registrations()
    vars(optdb)["__db__"]["a_tag_that_nobody_has"]
    assert surroundings.registrations() is before
    del vars(optdb)["__db__"]["a_tag_that_nobody_has"]


def test_what_cannot_be_compared_is_asked_for(monkeypatch):
    before = surroundings.registrations()

    def fail(self):
        raise RuntimeError("dictionary changed size during iteration")

    watch = Watch()
    monkeypatch.setattr(Watch, "_by_tags", fail)
    assert not watch.is_unchanged()
    monkeypatch.undo()
    assert surroundings.registrations() is before


def test_nothing_is_asked_twice(monkeypatch):
    x = pt.vector("x")
    # The first graph of a process makes PyTensor register more, and look for tags.
    for _ in range(2):
        compiled([x], pt.exp(x) + 1)
    monkeypatch.setattr(surroundings, "registered", lambda: pytest.fail("asked"))
    compiled([x], pt.exp(x) + 2)
    compiled([x], pt.exp(x) + 1)
    assert (pytensor_fuse.cache.info().misses, pytensor_fuse.cache.info().hits) == (2, 2)


def test_what_rewriters_note_while_they_run_is_not_told():
    items = registered()
    before, _ = registration_digest(items)
    x, y = pt.vector("x"), pt.matrix("y")
    outputs = [pt.linalg.inv(y @ y.T + pt.eye(3)) @ x, pt.diag(pt.exp(y))]
    pytensor.function([x, y], outputs, mode="FAST_RUN")
    assert registration_digest(items) == (before, "")
