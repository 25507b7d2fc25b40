"""Fixtures for tests of the pass over joins."""

from collections.abc import Iterator

import pytest

from support.joins import outcomes as joins
from support.switching import switched


@pytest.fixture
def joins_on() -> Iterator[None]:
    # What writes into joins is looked at, as each back-end runs it.
    with switched(native=False):
        yield


@pytest.fixture
def always_worth_it() -> Iterator[None]:
    with joins.always_worth_it():
        yield
