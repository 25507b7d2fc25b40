"""What tests of several modules here begin with."""

from __future__ import annotations

import pytest

import pytensor_fuse
from pytensor_fuse._cache.store import setting
from pytensor_fuse._cache.store.setting import Level


@pytest.fixture
def empty_memory(monkeypatch):
    """Let the cache be in memory alone, and empty before and after."""
    monkeypatch.setattr(setting, "_level", Level.MEMORY)
    pytensor_fuse.cache.clear(disk=False)
    yield
    pytensor_fuse.cache.clear(disk=False)
