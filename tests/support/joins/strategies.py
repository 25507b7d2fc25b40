"""Random graphs that join streams or write them into slices, and shrink.

As in `strategies`, a program consists of small integers, taken modulo the number of choices. Every
program is therefore valid, and the ``repr`` of a failing program can be pasted into a test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytensor.tensor as pt
from hypothesis import strategies as st
from pytensor.graph.basic import Variable
from pytensor.tensor.type import TensorType

Step = tuple[int, int, int, int]

N_CALLS = 3
"""Number of calls of a function, with other lengths each time where the types allow it."""

LENGTHS = (3, 1, 4, 0, 2, 7)
LAYOUTS = ("contiguous", "reversed", "every second", "fortran", "part of a larger array")


@dataclass(frozen=True)
class JoinProgram:
    """A recipe for a function that joins streams.

    Attributes
    ----------
    ndim, axis
        Indices of the dimensions and the axis of the streams; ``ndim`` counts from one dimension.
    streams
        Each step makes one or two streams, or changes the existing ones.
    use
        The use of the joined array.
    static
        Whether the types of the inputs state their shapes.
    """

    ndim: int
    axis: int
    streams: tuple[Step, ...]
    use: int = 0
    static: bool = False


@dataclass(frozen=True)
class SliceProgram:
    """A recipe for a chain of ``set_subtensor`` and ``inc_subtensor``."""

    buffer: int
    writes: tuple[Step, ...]
    use: int = 0
    static: bool = False


@dataclass(frozen=True)
class JoinCase:
    """Inputs and outputs of a function, with values of the inputs for each of its calls."""

    inputs: list[Variable]
    outputs: list[Variable]
    calls: list[list[np.ndarray]]


@dataclass
class _Input:
    var: Variable
    shape: Callable[[int], tuple[int, ...]]
    layout: str


def affine(x: Variable) -> Variable:
    return x * 2 + 1


UNARY: tuple[Callable[[Variable], Variable], ...] = (
    affine,
    pt.neg,
    pt.tanh,
    pt.sqr,
    lambda x: pt.exp(-x) + x,
)


def laid_out(values: np.ndarray, layout: str) -> np.ndarray:
    """Return an array equal to ``values`` with the memory layout ``layout``."""
    if not values.ndim:
        return values
    if layout == "reversed":
        return values[::-1].copy()[::-1]
    if layout == "every second":
        return np.repeat(values, 2, axis=-1)[..., ::2]
    if layout == "fortran":
        return np.asfortranarray(values)
    if layout == "part of a larger array":
        larger = np.full([n + 2 for n in values.shape], 99, dtype=values.dtype)
        part = larger[(slice(1, -1),) * values.ndim]
        part[...] = values
        return part
    return values


@dataclass
class _Builder:
    static: bool
    inputs: list[_Input] = field(default_factory=list)
    extra_outputs: list[Variable] = field(default_factory=list)

    def new_input(
        self,
        shape: Callable[[int], tuple[int, ...]],
        layout: int = 0,
        dtype: str = "float64",
        ones: tuple[int, ...] = (),
    ) -> Variable:
        """Return an input; ``shape(call)`` is its shape in a call, 1 in the dimensions ``ones``.

        Types state all lengths if the program is static, and always state lengths of 1, so that the
        dimension can be broadcast.
        """

        def with_ones(call: int) -> tuple[int, ...]:
            at = shape(0) if self.static else shape(call)
            return tuple(1 if i in ones else n for i, n in enumerate(at))

        first = with_ones(0)
        known = tuple(n if self.static or i in ones else None for i, n in enumerate(first))
        var = TensorType(dtype, known)(f"in{len(self.inputs)}")
        self.inputs.append(_Input(var, with_ones, LAYOUTS[layout % len(LAYOUTS)]))
        return var

    def case(self, outputs: list[Variable]) -> JoinCase:
        return JoinCase(
            [inp.var for inp in self.inputs],
            [*outputs, *self.extra_outputs],
            [[self.array(i, call) for i in range(len(self.inputs))] for call in range(N_CALLS)],
        )

    def array(self, index: int, call: int) -> np.ndarray:
        inp = self.inputs[index]
        rng = np.random.default_rng((index, call))
        shape, dtype = inp.shape(call), inp.var.type.dtype
        values = rng.integers(-4, 5, shape) if dtype == "int64" else rng.uniform(-2.0, 2.0, shape)
        return laid_out(np.asarray(values, dtype=dtype), inp.layout)


@dataclass
class _JoinBuilder(_Builder):
    ndim: int = 1
    axis: int = 0
    streams: list[Variable] = field(default_factory=list)

    # Inputs -------------------------------------------------------------------------------

    def shape(self, length: int) -> Callable[[int], tuple[int, ...]]:
        """Return the shape of a stream, by call: all lengths change from call to call."""

        def at(call: int) -> tuple[int, ...]:
            along = LENGTHS[(length + call * (length + 1)) % len(LENGTHS)]
            return tuple(along if i == self.axis else 2 + i + call for i in range(self.ndim))

        return at

    def x(self, b: int, c: int, dtype: str = "float64") -> Variable:
        return self.new_input(self.shape(b), c, dtype)

    # Steps --------------------------------------------------------------------------------

    def kernel(self, a: int, b: int, c: int) -> None:
        self.streams.append(UNARY[a % len(UNARY)](self.x(b, c)))

    def broadcasting(self, a: int, b: int, c: int) -> None:
        """Add a kernel of two operands, one of which is broadcast."""
        others = tuple(i for i in range(self.ndim) if i != self.axis)
        ones = ((self.axis,), others, tuple(range(self.ndim)))[a % 3]
        if a % 4 == 3:
            other = self.new_input(lambda call: ())
        else:
            other = self.new_input(self.shape(b), c + 1, ones=ones)
        self.streams.append(UNARY[a % len(UNARY)](self.x(b, c) - other))

    def two_operands(self, a: int, b: int, c: int) -> None:
        self.streams.append(self.x(b, c) * self.x(b, a) + 1)

    def pair(self, a: int, b: int, c: int) -> None:
        """Add two streams of one kernel, or a stream and another output of it."""
        common = pt.exp(UNARY[1](self.x(b, c)))
        if a % 3 == 0:
            self.streams += [common + 1, common * common]
        elif a % 3 == 1:
            self.streams += [common - 3, common]
        else:
            self.streams.append(common * 3)
            self.extra_outputs.append(common - 1)

    def input_itself(self, a: int, b: int, c: int) -> None:
        self.streams.append(self.x(b, c))

    def again(self, a: int, b: int, c: int) -> None:
        """Add a stream that is joined twice."""
        if self.streams:
            self.streams.append(self.streams[-1 - a % len(self.streams)])

    def also_output(self, a: int, b: int, c: int) -> None:
        """Add a stream that other nodes read."""
        self.kernel(a, b, c)
        stream = self.streams[-1]
        self.extra_outputs.append((stream, stream.sum(), stream[::-1])[c % 3])

    def of_a_stream(self, a: int, b: int, c: int) -> None:
        """Add a stream that is computed from another one."""
        if self.streams:
            stream = self.streams[-1 - a % len(self.streams)]
            if stream.type.dtype == "float64":
                self.streams.append((stream * 0.5 - 1, pt.tanh(stream), stream[::-1] + 1)[b % 3])

    def barrier(self, a: int, b: int, c: int) -> None:
        """Add a stream that is not the result of a kernel."""
        x = affine(self.x(b, c))
        if a % 3 == 0:
            self.streams.append(pt.cumsum(x, axis=self.axis))
        elif a % 3 == 1:
            self.streams.append(x[::-1])
        else:
            self.streams.append(pt.sort(x, axis=self.axis))

    def nested(self, a: int, b: int, c: int) -> None:
        """Join the last streams into one."""
        n = 2 + a % 2
        if len(self.streams) >= n:
            last = self.streams[-n:]
            del self.streams[-n:]
            inner = pt.concatenate(last, axis=self.axis)
            if b % 3 == 2:
                self.extra_outputs.append(inner)
            self.streams.append(inner)

    def other_dtype(self, a: int, b: int, c: int) -> None:
        x = self.x(b, c, ("int64", "float32")[a % 2])
        self.streams.append((x + x, x, -x)[a // 2 % 3])

    def reshaped(self, a: int, b: int, c: int) -> None:
        """Add a kernel with more, or fewer, dimensions than the stream."""
        if self.ndim == 1:
            shape = self.shape(b)
            matrix = self.new_input(lambda call: (*shape(call), 2 + call), c)
            result = UNARY[a % len(UNARY)](matrix)
            self.streams.append(result.ravel() if a % 2 else result.reshape((-1,)))
        else:
            x = self.x(b, c)
            self.streams.append(UNARY[a % len(UNARY)](x.ravel()).reshape(x.shape))

    def transposed(self, a: int, b: int, c: int) -> None:
        self.streams.append(UNARY[a % len(UNARY)](self.x(b, c).T).T)

    def constant(self, a: int, b: int, c: int) -> None:
        # The shapes must fit each call, and the lengths of the other axes change from call to call.
        if self.ndim == 1 or self.static:
            shape = self.shape(b)(0)
            self.streams.append(pt.constant(np.arange(float(np.prod(shape))).reshape(shape)))

    def filled(self, a: int, b: int, c: int) -> None:
        """Add a stream of equal elements, with length one or the length of another stream."""
        x = self.x(b, c)
        if a % 3 == 0:
            self.streams.append(pt.full_like(x, 2.5))
        elif a % 3 == 1:
            self.streams.append(affine(x).sum(axis=self.axis, keepdims=True))
        else:
            scalar = self.new_input(lambda call: ())
            self.streams.append(pt.alloc(pt.tanh(scalar), *x.shape))

    def length_one(self, a: int, b: int, c: int) -> None:
        """Add a kernel whose result has length one along the axis, by its type."""
        x = self.new_input(self.shape(b), c, ones=(self.axis,))
        self.streams.append(UNARY[a % len(UNARY)](x))

    def written(self, a: int, b: int, c: int) -> None:
        """Add a stream that is itself written into."""
        x = self.x(b, c)
        self.streams.append(pt.zeros_like(x)[1:].set(affine(x)[1:]))

    def part(self, a: int, b: int, c: int) -> None:
        """Add a part of a kernel's result."""
        x = UNARY[a % len(UNARY)](self.x(b, c))
        along = (slice(None),) * self.axis
        self.streams.append(x[(*along, slice(a % 2, None, 1 + b % 2))])

    def steps(self) -> tuple[Callable[[int, int, int], None], ...]:
        return (
            self.kernel,
            self.pair,
            self.two_operands,
            self.input_itself,
            self.broadcasting,
            self.again,
            self.also_output,
            self.of_a_stream,
            self.barrier,
            self.nested,
            self.other_dtype,
            self.reshaped,
            self.transposed,
            self.constant,
            self.filled,
            self.length_one,
            self.written,
            self.part,
        )


def build_join(program: JoinProgram) -> JoinCase:
    """Build the graph of a program; the same program always gives the same graph."""
    ndim = 1 + program.ndim % 3
    builder = _JoinBuilder(program.static, ndim=ndim, axis=program.axis % ndim)
    steps = builder.steps()
    for kind, a, b, c in program.streams:
        steps[kind % len(steps)](a, b, c)
    while len(builder.streams) < 2:
        builder.kernel(len(builder.streams), 0, 0)
    joined = pt.concatenate(builder.streams, axis=builder.axis)
    return builder.case(_uses(joined)[program.use % N_USES])


def _uses(result: Variable) -> tuple[list[Variable], ...]:
    return (
        [result],
        [affine(result)],
        [result, result.sum()],
        [result[1:], pt.tanh(result)],
        [result.T],
    )


N_USES = len(_uses(pt.vector()))
# The use that adds the elements of the result.
SUMS = 2


@dataclass
class _SliceBuilder(_Builder):
    """Writes into a buffer of ``3 * length`` rows; ``length`` differs in each call."""

    width: int | None = None

    def rows(self, call: int) -> int:
        return 4 + 2 * call

    def x(self, n_parts: int, c: int, *, row: bool = False) -> Variable:
        """Return an input as long as ``n_parts`` parts of the buffer."""

        def shape(call: int) -> tuple[int, ...]:
            along = n_parts * self.rows(call)
            return (along,) if self.width is None else (along, self.width)

        return self.new_input(shape, c, ones=(0,) if row else ())

    def buffer(self, number: int) -> Variable:
        whole = self.x(3, number // 4)
        kind = number % 4
        if kind == 0:
            return pt.zeros_like(whole)
        if kind == 1:
            return whole
        if kind == 2:
            return affine(whole)
        return pt.empty_like(whole)[:].set(1.5)

    def write(self, buffer: Variable, kind: int, a: int, b: int, c: int) -> Variable:
        length = buffer.shape[0] // 3
        index = (
            slice(length),
            slice(length, 2 * length),
            slice(2 * length, None),
            # This one overlaps the others.
            slice(length // 2, length + length // 2),
            slice(length - 1, None, -1),
            slice(None, None, 3),
        )[a % 6]
        function = UNARY[b % len(UNARY)]
        if kind % 6 == 3:
            # The written value is computed from the buffer, at another or the same position.
            value = function(buffer[length : 2 * length])
        elif kind % 6 == 4:
            value = pt.sqr(buffer[length // 2 : length + length // 2])
        elif kind % 6 == 5:
            value = function(self.x(1, c, row=True))
        else:
            value = function(self.x(1, c))
        part = buffer[index]
        return part.inc(value) if kind % 6 == 1 else part.set(value)


def build_slices(program: SliceProgram) -> JoinCase:
    """Build the graph of a program; the same program always gives the same graph."""
    builder = _SliceBuilder(program.static, width=(None, 3)[program.buffer // 8 % 2])
    buffer = builder.buffer(program.buffer)
    for kind, a, b, c in program.writes:
        before = buffer
        buffer = builder.write(buffer, kind, a, b, c)
        if kind // 6 == 1:
            builder.extra_outputs.append((before, before[::-1] + 1, before.sum())[c % 3])
    return builder.case(_uses(buffer)[program.use % N_USES])


def _numbers(most: int) -> st.SearchStrategy[int]:
    return st.integers(0, most)


N_KINDS = len(_JoinBuilder(False).steps())


def join_programs(max_streams: int = 6) -> st.SearchStrategy[JoinProgram]:
    return st.builds(
        JoinProgram,
        ndim=_numbers(2),
        axis=_numbers(2),
        streams=st.lists(
            st.tuples(_numbers(N_KINDS - 1), _numbers(11), _numbers(5), _numbers(4)),
            max_size=max_streams,
        ).map(tuple),
        use=_numbers(N_USES - 1),
        static=st.booleans(),
    )


def slice_programs(max_writes: int = 4) -> st.SearchStrategy[SliceProgram]:
    return st.builds(
        SliceProgram,
        buffer=_numbers(15),
        writes=st.lists(
            st.tuples(_numbers(11), _numbers(5), _numbers(4), _numbers(4)),
            min_size=1,
            max_size=max_writes,
        ).map(tuple),
        use=_numbers(N_USES - 1),
        static=st.booleans(),
    )
