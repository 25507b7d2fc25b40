"""Switches back what a test has switched."""

import pytest

import pytensor_fuse
from _activation.entries import switch


@pytest.fixture
def restore_fusion():
    """Leave the feature as it was."""
    on = pytensor_fuse.status()["fusion"].is_on
    yield
    switch(on)
