"""Fixtures for the tests of linking."""

from __future__ import annotations

import pytest

import pytensor_fuse
from pytensor_fuse._cache.store import setting
from pytensor_fuse._cache.store.setting import Level


@pytest.fixture
def empty_memory(monkeypatch):
    """Use the cache in memory alone, empty before and after the test."""
    monkeypatch.setattr(setting, "_level", Level.MEMORY)
    pytensor_fuse.cache.clear(disk=False)
    yield
    pytensor_fuse.cache.clear(disk=False)
