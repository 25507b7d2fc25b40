"""What accelerators do not try, since it would be in vain, PyTensor tries in vain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from pytensor.compile.mode import Mode
from pytensor.tensor.basic import get_underlying_scalar_constant_value
from pytensor.tensor.exceptions import NotScalarConstantError
from pytensor.tensor.rewriting import math

import pytensor_fuse
from pytensor_fuse._pytensor import canonizers, underlying_constants

from .graphs import GRAPHS
from .test_honoured import built, programs

needs_canonizers = pytest.mark.skipif(
    not pytensor_fuse.status()["accelerators"].parts["canonizers"].is_on,
    reason="not for this PyTensor",
)


@pytest.fixture
def skipped(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count what is skipped, after PyTensor has tried it."""
    counts: Counter[str] = Counter()
    must_decline, kind_of = canonizers._must_decline, canonizers.kind_of
    find = underlying_constants.hides_no_constant

    def checked(canonizer: Any, fgraph: Any, node: Any) -> bool:
        found: bool = must_decline(canonizer, fgraph, node)
        if found:
            assert canonizers._stock_transform(canonizer, fgraph, node) is False, node
            counts["canonizers"] += 1
        return found

    def checked_search(v: Any, elemwise: bool = True, max_steps: int = 10) -> bool:
        found = find(v, elemwise, max_steps)
        if found:
            with (
                pytensor_fuse.enabled(accelerators=False),
                pytest.raises(NotScalarConstantError),
            ):
                get_underlying_scalar_constant_value(v, elemwise=elemwise, max_recur=max_steps)
            counts["constants"] += 1
        return found

    monkeypatch.setattr(canonizers, "_must_decline", checked)
    monkeypatch.setattr(canonizers, "hides_no_constant", checked_search)
    assert kind_of is canonizers.kind_of
    yield counts


def compiled(build: Callable[[], Any]) -> None:
    inputs, outputs, options = build()
    mode = Mode(linker="py", optimizer="fast_run")
    pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore", **options)


@needs_canonizers
def test_of_the_graphs(skipped: Counter[str]) -> None:
    for name, build in GRAPHS.items():
        if name != "missing_input":
            compiled(build)
    assert skipped["canonizers"] > 300
    assert skipped["constants"] > 50
