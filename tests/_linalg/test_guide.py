"""The guide and the reference name all rules, and no others."""

import re
from pathlib import Path

import pytest

from pytensor_fuse._activation.passes.linalg.table import _OPS_KNOWN, _RULES
from pytensor_fuse._audit.sections.matrices.reasons import LinalgReason

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = "".join(
    (DOCS / name).read_text(encoding="utf-8")
    for name in ("linalg.md", "reference/linalg_rules.md", "reference/linalg_structures.md")
)
NAMES = {rule.name for _, rule in _RULES}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_rule_has_a_section(name):
    # In a heading, or where the section of what it belongs to says what it does.
    assert f"`{name}`" in GUIDE


def test_the_guide_names_no_rule_that_is_not_there():
    known = NAMES | {one.name for _, one, _ in _OPS_KNOWN}
    assert set(re.findall(r"(?<!_)linalg_[a-z_]*[a-z](?![a-z_]*\.)", GUIDE)) - known == set()


def test_the_guide_has_each_reason():
    named = set(re.findall(r"`([A-Z][A-Z_]+)`", GUIDE))
    assert {one.name for one in LinalgReason} <= named


def test_places_of_rules():
    """The guide says where rules run that must be before others."""
    places = {rule.rule: place for place, rule in _RULES}
    assert f"at {places['gradient_of_log_determinant']}" in GUIDE
    assert f"runs at {places['work_on_multiple']:.2f}" in GUIDE
    assert f"at {places['block_diagonal_determinant']}" in GUIDE
    assert f"at {places['work_on_definite_matrix']}" in GUIDE
    assert f"at {places['kronecker_determinant']:.2f}" in GUIDE
    assert f"at {places['note_why_unserved']}" in GUIDE
