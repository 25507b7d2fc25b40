"""Passes preserve the results of random programs, to the bit, and do not add loops.

No pass here changes the order of a sum or a product of floats, or the order in which stores combine
with an element; if several checks would fail, the first one of the original program fails.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytensor_fuse._native.passes.fusion import fused
from pytensor_fuse._native.passes.placement import place_temporaries
from pytensor_fuse._native.passes.rewrite import rewritten
from pytensor_fuse._native.program.model import For
from pytensor_fuse._native.program.parse import parse_program
from pytensor_fuse._native.program.text import print_program
from pytensor_fuse._native.program.verify import verify
from pytensor_fuse._native.program.walking import statements_in
from support.effort import IS_DEEP, examples
from support.native.outcomes import assert_same_outcome, run
from support.native.programs.nests import native_programs

from .arena import in_arena
from .memory_programs import memory_programs

# Each program goes through a pass in milliseconds, so the deep test can run many.
thorough = settings(max_examples=100_000) if IS_DEEP else examples(5)

PASSES = {
    "rewritten": [rewritten],
    "fused": [fused],
    "all": [rewritten, fused, fused],
}


def n_loops(program):
    return sum(isinstance(one, For) for one in statements_in(program.body))


def require_kept(passes, case):
    """Require that passes preserve what a program does."""
    text = print_program(case.program)
    before = run(case)
    program = case.program
    for one in PASSES[passes]:
        after = one(program)
        verify(after)
        assert n_loops(after) <= n_loops(program)
        assert_same_outcome(before, run(case, after))
        program = after
    assert print_program(case.program) == text


@pytest.mark.parametrize("passes", PASSES)
@thorough
@given(native_programs(longest=3, most_nests=7))
def test_passes_keep_outcomes(passes, case):
    require_kept(passes, case)


@pytest.mark.parametrize("passes", PASSES)
@thorough
@given(memory_programs())
def test_passes_keep_the_order_of_accesses(passes, case):
    require_kept(passes, case)


@thorough
@given(native_programs(longest=9, most_nests=7), st.booleans())
def test_temporaries_that_are_in_use_lie_apart(case, is_fused):
    before = run(case)
    program = fused(case.program) if is_fused else rewritten(case.program)
    assert_same_outcome(before, run(case, program))
    placement = place_temporaries(program)
    verify(program)
    assert_same_outcome(before, run(case, program, by=in_arena(placement)))


@given(native_programs())
def test_passes_know_programs_by_their_text_alone(case):
    text = print_program(fused(rewritten(case.program)))
    again = parse_program(print_program(case.program))
    assert print_program(fused(rewritten(again))) == text
