"""A cache of its own for each test: empty, in memory, and on disk only where a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytensor.link.c.basic import CLinker

import pytensor_fuse
from pytensor_fuse._cache.store import disk, setting
from pytensor_fuse._cache.store.setting import Level


@pytest.fixture(autouse=True)
def _empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    assert pytensor_fuse.status()["cache"].is_on
    monkeypatch.setattr(setting, "_level", Level.MEMORY)
    monkeypatch.setattr(disk, "default_disk", lambda: disk.Disk(tmp_path / "kept"))
    pytensor_fuse.cache.clear(disk=False)
    yield
    pytensor_fuse.cache.clear(disk=False)


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> disk.Disk:
    """Keep graphs on disk, too; return where."""
    monkeypatch.setattr(setting, "_level", Level.DISK)
    return disk.default_disk()


@pytest.fixture
def verifying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare what is kept with what rewriting makes."""
    monkeypatch.setattr(setting, "_level", Level.VERIFY)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note what PyTensor looks for modules of."""
    found: list[str] = []
    stock = CLinker.cmodule_key

    def cmodule_key(self: Any) -> Any:
        found.append(str(self.node_order[0].op))
        return stock(self)

    monkeypatch.setattr(CLinker, "cmodule_key", cmodule_key)
    return found
