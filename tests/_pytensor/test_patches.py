"""Patches have no effect until applied, and leave nothing of their own behind once undone."""

import pytest

from pytensor_fuse._pytensor.patches import ReplacedAttributes


def stock(self):
    return "stock"


def ours(self):
    return "ours"


@pytest.fixture
def owners():
    return [type(name, (), {"method": stock}) for name in "AB"]


def test_an_attribute_is_replaced_and_restored(owners):
    patch = ReplacedAttributes(owners, "method", ours)
    patch.prepare()
    assert not patch.holds()
    for _ in range(2):
        patch.apply()
        patch.apply()
        assert patch.holds()
        assert [owner().method() for owner in owners] == ["ours", "ours"]
        patch.undo()
        patch.undo()
        assert not patch.holds()
        assert [vars(owner)["method"] for owner in owners] == [stock, stock]


def test_what_was_put_over_ours_is_left_alone(owners):
    patch = ReplacedAttributes(owners, "method", ours)
    patch.prepare()
    patch.apply()

    def theirs(self):
        return "theirs over " + ours(self)

    owners[0].method = theirs
    assert not patch.holds()
    patch.undo()
    assert [vars(owner)["method"] for owner in owners] == [theirs, stock]
    # Once they have put ours back, it is undone.
    owners[0].method = ours
    patch.undo()
    assert vars(owners[0])["method"] is stock


def test_an_inherited_attribute_is_not_ours_to_replace(owners):
    heir = type("Heir", (owners[0],), {})
    with pytest.raises(AttributeError, match="no method of its own"):
        ReplacedAttributes([heir], "method", ours).prepare()
