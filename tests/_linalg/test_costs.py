"""Costs of linear algebra, and which of two is at most the other."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from pytensor_fuse._linalg.costs import Cost, product_cost, solve_cost, term

LENGTHS = st.one_of(st.integers(1, 9), st.sampled_from("abc"))
COSTS = st.lists(
    st.builds(lambda n, ls: term(n, *ls), st.integers(1, 5), st.lists(LENGTHS, max_size=3)),
    max_size=4,
).map(lambda terms: sum(terms, Cost()))


@given(COSTS, COSTS)
def test_at_most_holds_for_all_lengths(first, second):
    if first.is_at_most(second):
        for a, b, c in product((2, 3, 7), repeat=3):
            assert first.at(a=a, b=b, c=c) <= second.at(a=a, b=b, c=c)


@given(COSTS, COSTS)
def test_costs_add(first, second):
    lengths = {"a": 2, "b": 3, "c": 5}
    assert (first + second).at(**lengths) == first.at(**lengths) + second.at(**lengths)
    assert first.is_at_most(first + second)
    assert (first == second) == (first.is_at_most(second) and second.is_at_most(first))
    assert first != second or hash(first) == hash(second)


def test_known_and_unknown_lengths():
    assert product_cost(2, 3, 4) == term(48)
    assert repr(product_cost(2, "n", 4)) == "Cost(16 n)"
    assert solve_cost(1, "n", 3).is_at_most(solve_cost(2, "n", 3))
    assert not solve_cost(1, "n", "k").is_at_most(solve_cost(2, "n", 3))
