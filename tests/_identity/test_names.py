"""What has a name is that name, and other objects are themselves."""

from __future__ import annotations

import functools
import sys
import types

import pytest

from support.encodings import encoded


def test_a_name_is_what_was_met_under_it_first(monkeypatch):
    module = types.ModuleType("some_module")
    monkeypatch.setitem(sys.modules, "some_module", module)

    def define():
        kind = type("Kind", (), {"__module__": "some_module", "__qualname__": "Kind"})
        module.Kind = kind
        return kind

    first = define()
    content, _ = encoded(first)
    assert b"some_module:Kind" in content
    # As when a cell of a notebook is run again: objects of the old class are not of the new one.
    second = define()
    assert encoded(second)[0] == b"T"
    assert encoded(second) == encoded(second) != encoded(first)


@pytest.mark.parametrize("local", [lambda: 0, functools.partial(print)])
def test_what_has_no_name_is_itself(local):
    content, children = encoded(local)
    assert content == b"T"
    assert encoded(local)[1] == children
    assert children[0].digest is None


def test_the_main_module_is_another_one_in_another_process(monkeypatch):
    def function():
        """Said to be of the main module."""

    function.__module__, function.__qualname__ = "__main__", "function"
    monkeypatch.setattr(sys.modules["__main__"], "function", function, raising=False)
    assert encoded(function)[0] == b"T"
