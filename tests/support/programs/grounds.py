"""Facts made false in this process, without another PyTensor."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytensor_fuse._pytensor.compat.checks import Does, Says, Takes
from pytensor_fuse._pytensor.compat.known_files import FILES, PARTLY_KNOWN
from pytensor_fuse._pytensor.compat.known_sources import SOURCES

if TYPE_CHECKING:
    import pytest

    from pytensor_fuse._pytensor.compat.checks import Fact


def forget(monkeypatch: pytest.MonkeyPatch, fact: Fact) -> None:
    """Make the place that a fact finds unknown."""
    if isinstance(fact, Takes):
        monkeypatch.setattr(fact, "known", ("another",))
    elif isinstance(fact, Does | Says):
        module, _, path = fact.place.partition(":")
        monkeypatch.setitem(SOURCES[module], re.sub(r"\.(fn|fget)$", "", path), "another")
        for files in (FILES, PARTLY_KNOWN):
            monkeypatch.delitem(files, module, raising=False)
    else:
        monkeypatch.setattr(fact, "name", "no such name")
