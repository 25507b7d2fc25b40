"""Texts of numbers, sizes, places and lists."""

from __future__ import annotations

import pytest

from pytensor_fuse._reports.text import bounded, count, place, short, size, some


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (None, "? bytes"),
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (1_234_567, "1.23 MB"),
        (10**12, "1 TB"),
        (10**16, "1e+04 TB"),
    ],
)
def test_sizes(n: int | None, text: str) -> None:
    assert size(n) == text


def test_numbers_have_nouns() -> None:
    assert count(0, "node") == "0 nodes"
    assert count(1, "node") == "1 node"
    assert count(1234, "node") == "1,234 nodes"
    assert count(2, "query", "queries") == "2 queries"


def test_places_lead_through_inner_graphs() -> None:
    assert place((), "0: Exp") == "0: Exp"
    assert place(("1: Scan", "3: Blockwise"), "0: Exp") == "1: Scan > 3: Blockwise > 0: Exp"


def test_lists_are_cut_and_the_rest_is_counted() -> None:
    assert bounded([1, 2], str, "numbers", 2) == ["1", "2"]
    assert bounded(range(2000), str, "numbers", 1) == ["0", "... and 1,999 more numbers"]
    assert some(["a", "b"], 2) == "a, b"
    assert some(["a", "b", "c"], 2) == "a, b, ... and 1 more"
    assert some([], 2) == ""


def test_texts_are_cut_to_a_line() -> None:
    assert short("a\n  b") == "a b"
    assert short("x" * 60) == "x" * 60
    assert short("x" * 61) == "x" * 56 + " ..."
