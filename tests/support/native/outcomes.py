"""Outcomes of runs of loop programs, by the interpreter or by code compared with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pytensor_fuse._native.program.interpret import InterpreterError, interpret
from pytensor_fuse._native.program.text import print_program

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.program.model import Program


class Case(NamedTuple):
    """A program, and arrays for it; `run` says what may be done with these.

    Attributes
    ----------
    program
        The program.
    inputs, constants
        The arguments.
    generators
        The inputs that are addresses of random generators; each run has its own.
    """

    program: Program
    inputs: list[np.ndarray]
    constants: list[np.ndarray]
    generators: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"{print_program(self.program)}# {self.inputs}\n# {self.constants}"


class Outcome(NamedTuple):
    """The results of a run, and the inputs after it; or its exception."""

    outputs: list[np.ndarray]
    inputs: list[np.ndarray]
    raised: str = ""


def run(
    case: Case,
    program: Program | None = None,
    by: Callable[[Program, Sequence[np.ndarray], Sequence[np.ndarray]], list[Any]] = interpret,
) -> Outcome:
    """Run a case, or another program on its arrays, on copies of the inputs."""
    inputs = [array.copy() for array in case.inputs]
    generators = {place: np.random.default_rng(place) for place in case.generators}
    for place, generator in generators.items():
        inputs[place][0] = generator.bit_generator.ctypes.bit_generator.value
    try:
        outputs = by(case.program if program is None else program, inputs, case.constants)
    except InterpreterError:
        raise
    except Exception as error:
        # A check failed; data written before that are irrelevant.
        return Outcome([], [], f"{type(error).__name__}: {error}")
    for place in generators:
        inputs[place][0] = 0
    return Outcome([np.asarray(output) for output in outputs], inputs)


def assert_same_outcome(one: Outcome, other: Outcome) -> None:
    """Require that two outcomes are bitwise equal, except for the bits of NaN."""
    assert one.raised == other.raised
    for these, those in ((one.outputs, other.outputs), (one.inputs, other.inputs)):
        assert len(these) == len(those)
        for this, that in zip(these, those, strict=True):
            assert this.dtype == that.dtype
            assert this.shape == that.shape
            np.testing.assert_array_equal(this, that)
            if this.dtype.kind == "f":
                is_number = ~np.isnan(this)
                assert (np.signbit(this) == np.signbit(that))[is_number].all()
