"""Machine code agrees with the interpreter, to the bit, and accesses no memory but its own."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _native.passes.memory_programs import memory_programs
from pytensor_fuse._native.emission import spills
from pytensor_fuse._native.passes.fusion import fused
from support.effort import IS_DEEP, examples
from support.native.machine import (
    MACHINES,
    apart,
    compiled,
    run_code,
    with_known_lengths,
)
from support.native.outcomes import assert_same_outcome, run
from support.native.programs.nests import native_programs

thorough = settings(max_examples=100_000) if IS_DEEP else examples(1)


def require_same(case, function, *, at_end):
    """Require that code has the same outcome as the interpreter."""

    def by(_, inputs, constants):
        return run_code(function, inputs, constants, at_end=at_end)

    assert_same_outcome(run(case), run(case, by=by))


@pytest.mark.parametrize("machine", MACHINES)
@thorough
@given(case=native_programs(longest=20), at_end=st.booleans(), is_fused=st.booleans())
def test_programs(machine, case, at_end, is_fused):
    program = fused(case.program) if is_fused else case.program
    require_same(case, compiled(program, MACHINES[machine]), at_end=at_end)


@pytest.mark.parametrize("machine", MACHINES)
@thorough
@given(case=memory_programs(longest=12), at_end=st.booleans())
def test_order_of_accesses(machine, case, at_end):
    require_same(case, compiled(fused(case.program), MACHINES[machine]), at_end=at_end)


@pytest.mark.parametrize("machine", MACHINES)
@thorough
@given(case=native_programs(longest=20), at_end=st.booleans())
def test_temporary_buffers(machine, case, at_end):
    """Give each temporary buffer pages of its own, between inaccessible pages."""
    program = with_known_lengths(case.program, case.inputs)
    forbidden = []

    def place(placed):
        placement, pages = apart(placed, at_end=at_end)
        forbidden.extend(pages)
        return placement

    function = compiled(program, MACHINES[machine], place=place)._replace(
        forbidden=tuple(forbidden)
    )
    require_same(case, function, at_end=at_end)


@pytest.mark.parametrize("machine", ["512", "128"])
@thorough
@given(
    case=st.one_of(native_programs(longest=20), memory_programs(longest=12)), at_end=st.booleans()
)
def test_long_functions(machine, case, at_end):
    """Treat each function as a long one, whose values are reloaded before their uses."""
    with mock.patch.object(spills, "_MANY", -1):
        function = compiled(case.program, MACHINES[machine])
    require_same(case, function, at_end=at_end)
