"""The texts of the section about matrices."""

from __future__ import annotations

import pytensor.tensor as pt

from support.linalg.audits import A, found


def test_nothing_to_say():
    section = found(pt.exp(A))
    assert section.lines() == ["0 cubic operations"]
    assert section.html() == "<p>0 cubic operations</p>"


def test_names_are_escaped():
    odd = pt.matrix("<b>&")
    section = found(pt.linalg.det(odd), pt.linalg.inv(odd), inputs=[odd])
    assert "&lt;b&gt;&amp;" in section.html()
    assert "<b>" not in section.html()


def test_long_lists_are_cut():
    a = [pt.linalg.expm(A + float(i)) for i in range(30)]
    lines = found(*a).lines()
    assert "  ... and 22 more of these" in lines
    assert len(lines) < 20
