"""Fixtures for tests of the pass over joins."""

from collections.abc import Iterator

import pytest

import pytensor_fuse
from support import joins


@pytest.fixture
def joins_on() -> Iterator[None]:
    # What writes into joins is looked at, as each back-end runs it.
    with pytensor_fuse.enabled(native=False):
        yield


@pytest.fixture
def always_worth_it() -> Iterator[None]:
    with joins.always_worth_it():
        yield
