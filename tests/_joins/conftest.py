"""Fixtures for tests of the pass over joins."""

from collections.abc import Iterator

import pytest

import pytensor_fuse
from support import joins


@pytest.fixture
def joins_on() -> Iterator[None]:
    with pytensor_fuse.enabled():
        yield


@pytest.fixture
def always_worth_it() -> Iterator[None]:
    with joins.always_worth_it():
        yield
