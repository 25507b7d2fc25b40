"""A compile with accelerators is, step by step, the one without."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytensor
import pytest

import pytensor_fuse
from pytensor_fuse._accelerators import NAMES, record_of
from pytensor_fuse._pytensor.compat.checks import release
from support.accelerated import assert_same_compiles, compile_and_record

from .graphs import GRAPHS

NEEDS_COMPILER = pytest.mark.skipif(not pytensor.config.cxx, reason="there is no C compiler")


@cache
def stock(name: str, optimizer: str = "fast_run") -> dict[str, Any]:
    return compile_and_record(GRAPHS[name], False, optimizer=optimizer)


@pytest.mark.parametrize("name", GRAPHS)
def test_all_together(name: str) -> None:
    assert_same_compiles(GRAPHS[name], True, stock(name))


@pytest.mark.exhaustive
@pytest.mark.parametrize("accelerator", NAMES)
def test_one_alone(accelerator: str) -> None:
    # Those that are off in this PyTensor do nothing here, as one graph shows.
    is_off = record_of(accelerator).since > release()
    for name in ["regression"] if is_off else GRAPHS:
        assert_same_compiles(GRAPHS[name], [accelerator], stock(name))


@pytest.mark.parametrize("accelerator", NAMES)
def test_one_alone_on_some_graphs(accelerator: str) -> None:
    """Each accelerator runs on every sixth graph, and each graph with some accelerator."""
    for name in list(GRAPHS)[NAMES.index(accelerator) % 6 :: 6]:
        assert_same_compiles(GRAPHS[name], [accelerator], stock(name))


@pytest.mark.parametrize("name", ["deep", "regression", "indexing", "overwriting"])
def test_fast_compile(name: str) -> None:
    expected = stock(name, "fast_compile")
    assert_same_compiles(GRAPHS[name], True, expected, optimizer="fast_compile")


@pytest.mark.parametrize(
    ("linker", "name"),
    [("numba", name) for name in ("mixture", "regression", "overwriting", "updates")]
    + [pytest.param("cvm", "overwriting", marks=NEEDS_COMPILER)],
)
def test_other_linkers(linker: str, name: str) -> None:
    assert_same_compiles(GRAPHS[name], True, linker=linker)


@pytest.mark.parametrize("name", ["deep", "regression", "mixture", "overwriting"])
def test_graphs_for_jax(name: str) -> None:
    """They are rewritten whether JAX is there or not; where it is not, linking fails."""
    expected = compile_and_record(GRAPHS[name], False, linker="jax")
    assert len(expected["events"][0]) > 20
    assert_same_compiles(GRAPHS[name], True, expected, linker="jax")


def test_toggled_between_compiles() -> None:
    for name in ("large", "gaussian_process", "updates"):
        for accelerators in (True, False, ["graph_edits"], True, ["instance_checks"], False):
            assert_same_compiles(GRAPHS[name], accelerators, stock(name))


def test_the_graphs_are_worth_comparing() -> None:
    events = [event[0] for name in GRAPHS for log in stock(name).get("events", ()) for event in log]
    assert events.count("import") > 300
    assert events.count("change") > 500
    assert events.count("validate") > 300
    assert "error" in stock("missing_input")


def test_all_are_on_here() -> None:
    status = pytensor_fuse.status()["accelerators"]
    assert status.is_on
    assert set(status.parts) == set(NAMES)
    off = {name for name, part in status.parts.items() if not part.is_on}
    assert off == {name for name in NAMES if record_of(name).since > release()}
