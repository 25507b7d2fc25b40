"""Lowered graphs against PyTensor: interpreted, bit for bit, or with the same exception."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor
import pytest
from pytensor.compile.io import In, Out
from pytensor.compile.maker import FunctionMaker
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.fg import FunctionGraph

import pytensor_fuse._native.lowering.rules  # noqa: F401  registers them
from pytensor_fuse._native.lowering.graph import Lowered, lower_graph
from pytensor_fuse._native.program.interpret import interpret
from pytensor_fuse._native.program.text import print_program
from pytensor_fuse._native.program.verify import verify

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable

PYTHON = Mode("py", optimizer=None)


def raw_graph(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> FunctionGraph:
    """Return a graph as it was written."""
    fgraph = FunctionGraph(list(inputs), list(outputs), clone=True)
    if any(node.op.destroy_map for node in fgraph.apply_nodes):
        fgraph.attach_feature(DestroyHandler())
    return fgraph


def rewritten_graph(
    inputs: Sequence[Variable], outputs: Sequence[Variable], *, destroyed: Sequence[int] = ()
) -> FunctionGraph:
    """Return a graph as Numba mode rewrites it."""
    # Rewriting changes its argument.
    own = FunctionGraph(list(inputs), list(outputs), clone=True)
    given = [In(one, mutable=at in destroyed) for at, one in enumerate(own.inputs)]
    # Without linking, which would let Numba generate functions that nothing calls.
    maker = FunctionMaker(
        given,
        [Out(one) for one in own.outputs],
        get_mode("NUMBA"),
        on_unused_input="ignore",
        accept_inplace=True,
    )
    return maker.fgraph


def lowered(
    fgraph: FunctionGraph, *, destroyed: Sequence[int] = (), reassociates: bool = False
) -> Lowered:
    """Lower a graph and verify its program."""
    result = lower_graph(
        fgraph.inputs,
        fgraph.outputs,
        fgraph.toposort(),
        destroyed=destroyed,
        reassociates=reassociates,
    )
    verify(result.program)
    return result


def run(
    fgraph: FunctionGraph, values: Sequence[Any], *, destroyed: Sequence[int] = ()
) -> list[Any]:
    """Interpret a graph on copies of values."""
    program, constants, _ = lowered(fgraph, destroyed=destroyed)
    given = [
        np.array(value, dtype=one.type.dtype, order="C")
        for value, one in zip(values, fgraph.inputs, strict=True)
    ]
    kept = [one.copy() for one in given]
    outs = interpret(program, given, constants)
    for at, (one, before) in enumerate(zip(given, kept, strict=True)):
        if at not in destroyed:
            require_same(one, before, f"input {at} afterwards")
    return outs


def stock(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    values: Sequence[Any],
    mode: Any = PYTHON,
) -> list[Any]:
    """Run a graph by PyTensor, on copies of values."""
    given = [In(one, mutable=True) for one in inputs]
    function = pytensor.function(
        given, list(outputs), mode=mode, on_unused_input="ignore", accept_inplace=True
    )
    copies = [
        np.array(value, dtype=one.type.dtype) for value, one in zip(values, inputs, strict=True)
    ]
    return [np.asarray(out) for out in function(*copies)]


def require_same(one: np.ndarray, other: np.ndarray, what: str) -> None:
    """Require that arrays are bitwise equal; all NaNs are equal."""
    assert one.dtype == other.dtype, f"{what}: {one.dtype} instead of {other.dtype}"
    assert one.shape == other.shape, f"{what}: shape {one.shape} instead of {other.shape}"
    if one.dtype.kind == "f":
        is_nan = np.isnan(one) & np.isnan(other)
        one, other = np.where(is_nan, 0, one), np.where(is_nan, 0, other)
        one, other = (x.astype(x.dtype).view(f"u{x.itemsize}") for x in (one, other))
    assert np.array_equal(one, other), f"{what}:\n{one}\ninstead of\n{other}"


def require_near(one: np.ndarray, other: np.ndarray, what: str, rtol: float) -> None:
    """Require that arrays of floats are close; the signs of zeros do not matter."""
    assert one.dtype == other.dtype, f"{what}: {one.dtype} instead of {other.dtype}"
    assert one.shape == other.shape, f"{what}: shape {one.shape} instead of {other.shape}"
    finite = np.abs(other[np.isfinite(other)])
    atol = rtol * min(float(finite.max(initial=0.0)), 1.0)
    np.testing.assert_allclose(one, other, rtol=rtol, atol=atol, err_msg=what)


def check(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    values: Sequence[Any],
    *,
    destroyed: Sequence[int] = (),
    rewrites: bool = True,
    rtol: float = 0.0,
) -> None:
    """Require that a graph, raw and rewritten, agrees with PyTensor's Python linker.

    Parameters
    ----------
    inputs, outputs
        The graph.
    values
        Values of the inputs.
    destroyed
        The inputs that may be overwritten.
    rewrites
        Whether to test the graph that Numba mode rewrites it to as well.
    rtol
        The tolerance of floats, relative to the largest; by default 0.
    """
    expected = stock(inputs, outputs, values)
    graphs = [raw_graph(inputs, outputs)]
    if rewrites:
        graphs.append(rewritten_graph(inputs, outputs, destroyed=destroyed))
    for fgraph in graphs:
        outs = run(fgraph, values, destroyed=destroyed)
        for at, (one, other) in enumerate(zip(outs, expected, strict=True)):
            if rtol and other.dtype.kind == "f":
                require_near(one, other, f"output {at}", rtol)
            else:
                require_same(one, other, f"output {at}")


def check_failure(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    values: Sequence[Any],
    exception: type[BaseException],
    message: str,
) -> None:
    """Require that a graph, raw and rewritten, fails with an exception and a message."""
    for fgraph in (raw_graph(inputs, outputs), rewritten_graph(inputs, outputs)):
        with pytest.raises(exception) as caught:
            run(fgraph, values)
        assert caught.type is exception
        assert str(caught.value) == message


def failure_of_stock(
    inputs: Sequence[Variable], outputs: Sequence[Variable], values: Sequence[Any]
) -> tuple[type[BaseException], str]:
    """Return the exception of stock Numba mode: the class, and the first line of the text."""
    try:
        stock(inputs, outputs, values, "NUMBA")
    except Exception as error:
        return type(error), str(error).splitlines()[0]
    raise AssertionError("stock raised nothing")


def text(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> str:
    """Return the program of a graph as it was written."""
    return print_program(lowered(raw_graph(inputs, outputs)).program)
