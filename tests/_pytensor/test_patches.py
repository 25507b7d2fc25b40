"""Patches have no effect until applied, and leave nothing of their own behind once undone."""

import importlib
import sys

import pytest

from pytensor_fuse._pytensor.compat.checks import Has, OtherGroundError
from pytensor_fuse._pytensor.patching.patches import PatchOnceImported, ReplacedAttributes


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


NAME = "a_module_that_is_imported_later"


@pytest.fixture
def source(tmp_path, monkeypatch):
    """The file of a module that can be imported, and is forgotten in the end."""
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / f"{NAME}.py"
    file.write_text("def method():\n    return 'stock'\n")
    before = list(sys.meta_path)
    yield file
    sys.modules.pop(NAME, None)
    assert sys.meta_path == before


@pytest.fixture
def failures():
    return []


@pytest.fixture
def later(source, failures):
    def make():
        return ReplacedAttributes([sys.modules[NAME]], "method", lambda: "ours")

    return PatchOnceImported(NAME, [Has(NAME, "method")], make, failures.append)


def method():
    return __import__(NAME).method()


def test_a_patch_waits_for_its_module(later, failures):
    later.prepare()
    assert not later.holds()
    for _ in range(2):
        later.apply()
        assert later.holds()
        assert NAME not in sys.modules
    assert method() == "ours"
    assert later.holds()
    for _ in range(2):
        later.undo()
        assert not later.holds()
        assert method() == "stock"
    later.apply()
    assert later.holds()
    assert method() == "ours"
    later.undo()
    assert failures == []


def test_a_patch_that_is_undone_waits_no_more(later):
    later.prepare()
    for _ in range(2):
        later.apply()
        later.undo()
        assert not later.holds()
    assert method() == "stock"
    later.prepare()
    later.apply()
    assert method() == "ours"
    later.undo()
    assert method() == "stock"


def test_a_module_that_has_been_imported(later):
    assert method() == "stock"
    later.prepare()
    assert not later.holds()
    later.apply()
    assert method() == "ours"
    later.undo()
    assert method() == "stock"


def test_an_import_that_fails_may_be_tried_again(later, source):
    text = source.read_text()
    source.write_text("raise LookupError('a module of a test')")
    later.prepare()
    later.apply()
    with pytest.raises(LookupError, match="a module of a test"):
        method()
    assert later.holds()
    # Of another size, or else its bytecode is taken for that of the first text.
    source.write_text(text)
    assert method() == "ours"
    later.undo()


def test_a_module_that_is_another_when_it_is_imported(later, source, failures):
    source.write_text("def procedure():\n    return 'another'\n")
    later.prepare()
    later.apply()
    assert __import__(NAME).procedure() == "another"
    assert failures == [f"{NAME} has no method"]
    assert not later.holds()
    with pytest.raises(OtherGroundError, match=f"^{NAME} has no method$"):
        later.prepare()
    later.undo()


def test_a_patch_that_cannot_be_applied_when_its_module_is_imported(source, failures):
    def make():
        raise LookupError("a patch of a test")

    later = PatchOnceImported(NAME, [], make, failures.append)
    later.apply()
    assert method() == "stock"
    assert failures == [f"{NAME} cannot be changed: LookupError: a patch of a test"]
    assert not later.holds()


def test_a_module_that_is_imported_between_is_asked_for_its_ground(later, source, failures):
    source.write_text("def procedure():\n    return 'another'\n")
    later.prepare()
    later.apply()
    later.undo()
    assert __import__(NAME).procedure() == "another"
    with pytest.raises(OtherGroundError, match=f"^{NAME} has no method$"):
        later.apply()
    assert not later.holds()
    assert not later.is_applied
    later.undo()
    assert failures == []


def test_a_module_that_is_loaded_again_is_changed_again(later):
    later.prepare()
    later.apply()
    assert method() == "ours"
    assert later.is_applied
    importlib.reload(sys.modules[NAME])
    assert method() == "stock"
    assert not later.holds()
    later.prepare()
    later.apply()
    assert method() == "ours"
    assert later.holds()
    later.undo()
    assert method() == "stock"
    assert not later.is_applied
