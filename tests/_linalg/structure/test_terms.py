"""Matrices as sums of terms."""

import pytensor.tensor as pt

from pytensor_fuse._linalg.structure.terms import terms_of


def test_terms_print_as_formulas():
    a, s = pt.dmatrix("a"), pt.dscalar("s")
    terms = terms_of(-0.5 * (a @ a.T) / s**2 + 3 * a)
    assert list(map(repr, terms)) == ["-0.5 * s^-2 * (a @ a.T)", "3 * a"]
