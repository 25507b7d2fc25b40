"""Facts tell what has changed from what has not."""

import importlib
import sys

import pytest

from pytensor_fuse._pytensor.ground import Does, Written

NAME = "a_module_of_facts"
TEXT = """
class Owner:
    def method(self):
        # A comment.
        return len("text") + 3
"""


@pytest.fixture
def fact_of(tmp_path, monkeypatch):
    """Return the fingerprint that a fact finds in a module with a text."""
    monkeypatch.syspath_prepend(tmp_path)

    def found(kind, text):
        (tmp_path / f"{NAME}.py").write_text(text)
        importlib.invalidate_caches()
        sys.modules.pop(NAME, None)
        place = f"{NAME}:Owner.method"
        said = kind(place, ("unknown",)).mismatch()
        assert said.startswith(f"{place} is another (")
        fingerprint = said.partition("(")[2].rstrip(")")
        assert kind(place, ("older", fingerprint)).mismatch() is None
        return fingerprint

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield found
    sys.modules.pop(NAME, None)


@pytest.mark.parametrize(
    ("kind", "old", "new", "is_seen"),
    [
        (Written, "# A comment.", "# Another one.", False),
        (Written, '"text"', "'text'", False),
        (Written, "3", "4", True),
        (Written, "text", "others", True),
        (Written, "len", "hash", True),
        (Does, "# A comment.", "# Another one.", False),
        (Does, "3", "4", False),
        (Does, "text", "others", False),
        (Does, "len", "hash", True),
    ],
)
def test_what_a_fingerprint_sees(fact_of, kind, old, new, is_seen):
    assert old in TEXT
    changed = fact_of(kind, TEXT.replace(old, new)) != fact_of(kind, TEXT)
    assert changed is is_seen
