"""Random programs pass the verifier, survive a round trip through text, and run as written."""

from hypothesis import given
from hypothesis import strategies as st

from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.model import Load, Op
from pytensor_fuse._native.program.parse import parse_program
from pytensor_fuse._native.program.text import print_program
from pytensor_fuse._native.program.verify import verify
from support.native.outcomes import assert_same_outcome, run
from support.native.programs.nests import native_programs, written


@given(native_programs())
def test_programs_are_valid_and_run(case):
    verify(case.program)
    run(case)


@given(native_programs())
def test_text_has_all_of_a_program(case):
    text = print_program(case.program)
    again = parse_program(text)
    assert print_program(again) == text
    assert again.dtypes == case.program.dtypes
    assert_same_outcome(run(case), run(case, again))


class PlainBuilder(Builder):
    """Writes each statement where it is requested: no sharing, hoisting or folding."""

    def operation(self, name, dtype, args):
        out = self._new(dtype, self._blocks[-1])
        self._blocks[-1].statements.append(Op(out, name, args))
        return out

    def load(self, buffer, index, *, is_guarded=False):
        out = self._new(self.program.buffers[buffer].dtype, self._blocks[-1])
        self._blocks[-1].statements.append(Load(out, buffer, tuple(index), is_guarded=is_guarded))
        return out


@st.composite
def programs_written_twice(draw):
    """Draw one program, written by two builders."""
    drawn = []

    def draw_and_note(strategy):
        drawn.append(draw(strategy))
        return drawn[-1]

    case = written(draw_and_note, Builder())
    again = iter(drawn)
    return case, written(lambda _: next(again), PlainBuilder())


@given(programs_written_twice())
def test_what_the_builder_saves_changes_nothing(cases):
    case, plain = cases
    verify(plain.program)
    assert len(case.program.dtypes) <= len(plain.program.dtypes)
    assert_same_outcome(run(case), run(plain))
