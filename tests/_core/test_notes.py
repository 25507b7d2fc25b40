"""Which objects have notes in their tags."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.utils import Scratchpad

from pytensor_fuse._core import with_notes


def noted(names):
    tag = Scratchpad()
    for name in names:
        setattr(tag, name, 1)
    return SimpleNamespace(tag=tag)


@given(st.lists(st.sets(st.sampled_from(["trace", "used", "more"]))))
def test_notes(names):
    objects = [noted(each) for each in names]
    found = with_notes(objects, "trace")
    expected = [one for one, each in zip(objects, names, strict=True) if each - {"trace"}]
    assert [id(one) for one in found] == [id(one) for one in expected]


@pytest.mark.parametrize("one", [object(), SimpleNamespace(tag=3), SimpleNamespace()])
def test_what_has_no_tag(one):
    with pytest.raises(AttributeError):
        with_notes([one], "trace")


def test_a_tag_of_no_dict():
    class Odd:
        tag = SimpleNamespace()

        @property
        def __dict__(self):
            return 3

    with pytest.raises(TypeError):
        with_notes([SimpleNamespace(tag=Odd())], "trace")
