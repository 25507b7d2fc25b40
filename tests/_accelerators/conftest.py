"""Switches the accelerators for the tests that ask for it."""

from collections.abc import Iterator

import pytest

from support.switching import switched


@pytest.fixture
def switch_accelerators(request: pytest.FixtureRequest) -> Iterator[None]:
    """Switch the accelerators as the parameter ``on`` says; without one, on."""
    on = "on" not in request.fixturenames or request.getfixturevalue("on")
    with switched(accelerators=on):
        yield
