"""The effort of tests: many times more in the deep and the nightly profile than for a change."""

from __future__ import annotations

import os

from hypothesis import settings

# Whether there is time for more sizes, more backends and more random graphs.
IS_DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"


def examples(factor: float) -> settings:
    """Return settings for ``factor`` times the examples that the profile gives to each test."""
    return settings(max_examples=max(1, round(settings().max_examples * factor)))
