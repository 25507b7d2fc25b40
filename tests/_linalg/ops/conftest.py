"""The implementations of ops for each back-end are what these tests are about: Numba's, too.

Native rules of the same ops have tests of their own, in `tests/_native/lowering`.
"""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _by_numba(numba_alone: None) -> None:
    """Have Numba compile what is compiled in its mode."""
