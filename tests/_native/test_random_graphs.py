"""Random graphs as machine code, as they are and rewritten, against the Python linker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pytensor.compile.io import In
from pytensor.compile.mode import Mode
from pytensor.graph.traversal import vars_between
from pytensor.graph.utils import InconsistencyError

import pytensor_fuse
from pytensor_fuse._errors import NativeLinkError
from pytensor_fuse._native.linking.graphs import lowered_graph
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.runtime.compiling import optimized
from pytensor_fuse._native.runtime.llvm import host_machine
from support.effort import IS_DEEP, examples
from support.native.evaluation import evaluate, failures
from support.native.graphs.steps import build
from support.native.graphs.writing import Case, Program, programs
from support.native.lowering import require_same, rewritten_graph
from support.native.machine import compiled as machine_code_of
from support.native.machine import run_code
from support.switching import switched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.fg import FunctionGraph

# In deep runs, as many nodes as issue 28 requires.
MOST_STEPS = 100 if IS_DEEP else 20
# In deep runs, 10^5 examples of all tests, in parts: Hypothesis stores all choices of a test, which
# took 24 GB for 30,000 graphs.
in_parts = pytest.mark.parametrize("part", range(17 if IS_DEEP else 1))


def compiled(case: Case, mode: Any, *, fastmath: bool = False, mutable: bool = False) -> Any:
    """Return the function of a graph, or None if rewriting has introduced ops without a rule."""
    inputs = [In(one, mutable=mutable) for one in case.inputs]

    def made(mode: Any) -> Any:
        return pytensor.function(
            inputs, case.outputs, mode=mode, on_unused_input="ignore", accept_inplace=True
        )

    with pytensor.config.change_flags(numba__fastmath=fastmath):
        try:
            with switched(cache=False):
                return made(mode)
        except NativeLinkError:
            event("an op without a rule")
            return None
        except InconsistencyError:
            event("PyTensor lets two nodes destroy an input")
            with pytensor_fuse.enabled(False), pytest.raises(InconsistencyError):
                made("NUMBA")
            return None
        except Exception as error:
            if type(error) is not type(case.failure):
                raise
            event("what fails is constant")
            return None


def outcome(function: Any, given: Sequence[Any]) -> Any:
    """Return the results as arrays, or the exception."""
    try:
        return [np.asarray(one) for one in function(*given)]
    except Exception as error:
        return error


def require_same_outcome(ours: Any, expected: Any, fgraph: FunctionGraph, case: Case) -> None:
    """Require the same results bit for bit, or an exception of the same class."""
    if isinstance(expected, Exception):
        event(type(expected).__name__)
        require_same_failure(ours, expected, fgraph, case)
        return
    if isinstance(ours, Exception):
        raise ours
    for at, (one, other) in enumerate(zip(ours, expected, strict=True)):
        require_same(one, other, f"output {at}")


def require_same_failure(ours: Any, expected: Exception, fgraph: FunctionGraph, case: Case) -> None:
    """Require an exception of the expected class, or of another failing node."""
    if "Runtime broadcasting not allowed" in str(expected):
        # Only the Python linker checks this: Numba broadcasts a single element here.
        return
    # If an index is out of bounds and a value does not fit either, either exception is valid.
    either = {IndexError, ValueError}
    if type(ours) is type(expected) or {type(ours), type(expected)} == either:
        return
    event("another node's failure")
    raised = failures(fgraph, case.copies())
    if raised & either:
        raised |= either
    assert type(ours) in raised, repr(ours)


def require_near_outcome(
    ours: Sequence[np.ndarray], expected: Sequence[np.ndarray], rtol: float
) -> None:
    """Require results that are equal up to rounding."""
    for at, (one, other) in enumerate(zip(ours, expected, strict=True)):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol, err_msg=f"output {at}")


def require_untouched(case: Case, given: Sequence[Any]) -> None:
    for at, (one, before) in enumerate(zip(given, case.values, strict=True)):
        require_same(one, before, f"input {at} afterwards")


def check_as_written(case: Case) -> None:
    function = compiled(case, Mode("native", None))
    if function is None:
        return
    given = case.copies()
    expected = case.failure or case.expected
    require_same_outcome(outcome(function, given), expected, function.maker.fgraph, case)
    require_untouched(case, given)


def check_rewritten(case: Case, *, mutable: bool = False) -> None:
    function = compiled(case, "NATIVE", mutable=mutable)
    if function is None:
        return
    fgraph = function.maker.fgraph
    expected = outcome(lambda *given: evaluate(fgraph, given), case.copies())
    given = case.copies()
    require_same_outcome(outcome(function, given), expected, fgraph, case)
    if not mutable:
        require_untouched(case, given)


def check_rounded(case: Case, *, fastmath: bool) -> None:
    function = compiled(case, "NATIVE", fastmath=fastmath)
    if function is None:
        return
    has_single = any(
        getattr(one.type, "dtype", "") == "float32"
        for one in vars_between(case.inputs, case.outputs)
    )
    rtol = 1e-3 if has_single else 1e-9
    fgraph = function.maker.fgraph
    expected = outcome(lambda *given: evaluate(fgraph, given), case.copies())
    require_rewritten_as_pytensor_does(case, expected, rtol)
    given = case.copies()
    ours = outcome(function, given)
    if isinstance(ours, Exception) or isinstance(expected, Exception):
        require_same_outcome(ours, expected, fgraph, case)
        return
    require_near_outcome(ours, expected, rtol)
    require_untouched(case, given)


def require_rewritten_as_pytensor_does(case: Case, rewritten: Any, rtol: float) -> None:
    """Require the results of the graph as written, or those of PyTensor's own rewriting.

    Some of PyTensor's rewrites are wrong: ``x[::-2]`` of two elements becomes ``x[0]``.
    """
    try:
        require_near_outcome(rewritten, case.expected, rtol)
    except (AssertionError, TypeError):
        event("rewriting changes the results")
        with pytensor_fuse.enabled(False):
            stock = pytensor.function(
                case.inputs, case.outputs, mode="NUMBA", on_unused_input="ignore"
            )
        fgraph = stock.maker.fgraph
        expected = outcome(lambda *given: evaluate(fgraph, given), case.copies())
        if isinstance(expected, Exception):
            assert type(rewritten) is type(expected), repr(rewritten)
        else:
            require_near_outcome(rewritten, expected, rtol)


@in_parts
@given(program=programs(most_steps=MOST_STEPS))
def test_as_written(program: Program, part: int) -> None:
    check_as_written(build(program))


@in_parts
@given(program=programs(most_steps=MOST_STEPS), mutable=st.booleans())
def test_rewritten(program: Program, mutable: bool, part: int) -> None:
    check_rewritten(build(program), mutable=mutable)


@in_parts
@given(
    program=programs(most_steps=MOST_STEPS, is_smooth=True, may_fail=False), fastmath=st.booleans()
)
def test_rounded(program: Program, fastmath: bool, part: int) -> None:
    check_rounded(build(program), fastmath=fastmath)


@examples(0.4)
@given(programs(most_steps=MOST_STEPS), st.booleans(), st.booleans())
def test_memory(program: Program, mutable: bool, at_end: bool) -> None:
    """Run the code with inaccessible pages around each array."""
    case = build(program)
    destroyed = range(len(case.inputs)) if mutable else ()
    try:
        fgraph = rewritten_graph(case.inputs, case.outputs, destroyed=destroyed)
    except InconsistencyError:
        # PyTensor lets two nodes destroy an input.
        return
    except Exception as error:
        # A constant part of the graph fails while it is rewritten.
        if type(error) is not type(case.failure):
            raise
        return
    order = fgraph.toposort()
    if not order or any(lower.refusal(node) for node in order):
        return
    lowered = lowered_graph(fgraph, order)
    function = machine_code_of(
        optimized(lowered.program, lowered.constants), host_machine(), uses_library=True
    )
    try:
        run_code(function, case.copies(), lowered.constants, at_end=at_end)
    except AssertionError as error:
        # The graph may contain checks of its own.
        if "machine code ends" in str(error):
            raise
    except (ValueError, IndexError):
        pass
