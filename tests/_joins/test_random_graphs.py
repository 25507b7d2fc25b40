"""Streams written into the joined buffer, on random graphs, against stock.

There are exceptions from results being the same bit for bit, for compilers may then round
otherwise: kernels that an `inc_subtensor` is taken into.
"""

from __future__ import annotations

import pytest
from hypothesis import event, given
from pytensor.compile.executor import Function

import pytensor_fuse
from support.effort import examples
from support.joins.against_stock import (
    COMPILERS,
    check,
    compiled,
    debug_mode,
    is_rewritten,
    ops_named,
)
from support.joins.strategies import (
    N_USES,
    SUMS,
    JoinProgram,
    SliceProgram,
    build_join,
    build_slices,
    join_programs,
    slice_programs,
)

few_examples = examples(0.2)
"""For tests that compile every kernel."""


def note(function: Function) -> None:
    """Let Hypothesis count in how many examples there was something to do."""
    event("rewritten" if is_rewritten(function) else "left as it was")


@given(join_programs())
def test_joins_in_python(program: JoinProgram) -> None:
    note(check(build_join(program), "py"))


@pytest.mark.parametrize("linker", COMPILERS)
@few_examples
@given(program=join_programs(4))
def test_joins_compiled(linker: str, program: JoinProgram) -> None:
    note(check(build_join(program), linker))


@given(slice_programs())
def test_slices_in_python(program: SliceProgram) -> None:
    note(check(build_slices(program), "py"))


@pytest.mark.parametrize("linker", COMPILERS)
@few_examples
@given(program=slice_programs(3))
def test_slices_compiled(linker: str, program: SliceProgram) -> None:
    # C adds in the order of memory, which stock's copy of an input keeps, and ours does not.
    sums_before = any(kind // 6 == 1 and c % 3 == 2 for kind, _, _, c in program.writes)
    adds_up = program.use % N_USES == SUMS or sums_before
    rounding = 1e-12 if adds_up or any(kind % 6 == 1 for kind, *_ in program.writes) else 0.0
    note(check(build_slices(program), linker, rounding=rounding))


@pytest.mark.parametrize("linker", COMPILERS)
def test_a_sum_of_what_was_an_input_in_another_order(linker: str) -> None:
    program = SliceProgram(buffer=13, writes=((0, 0, 0, 0),), use=SUMS, static=True)
    check(build_slices(program), linker, rounding=1e-12)


@pytest.mark.parametrize("linker", COMPILERS)
def test_a_sum_before_the_last_write(linker: str) -> None:
    program = SliceProgram(buffer=13, writes=((0, 0, 0, 0), (6, 0, 0, 2)), use=0, static=True)
    check(build_slices(program), linker, rounding=1e-12)


@given(join_programs())
def test_every_join_is_explained(program: JoinProgram) -> None:
    case = build_join(program)
    function = compiled(case.inputs, case.outputs)
    reports = pytensor_fuse.explain(function, "joins")
    assert len(ops_named(function, "WriteJoin")) == sum(r.eliminated for r in reports)
    kept = [report for report in reports if not report.eliminated]
    assert len(ops_named(function, "Join")) <= len(kept)
    assert all(str(report.reason.value) in str(report) for report in kept)


@few_examples
@given(join_programs(4))
def test_joins_in_debug_mode(program: JoinProgram) -> None:
    case = build_join(program)
    function = compiled(case.inputs, case.outputs, debug_mode(c_code=False))
    for values in case.calls:
        function(*values)


@few_examples
@given(slice_programs(3))
def test_slices_in_debug_mode(program: SliceProgram) -> None:
    case = build_slices(program)
    function = compiled(case.inputs, case.outputs, debug_mode(c_code=False))
    for values in case.calls:
        function(*values)
