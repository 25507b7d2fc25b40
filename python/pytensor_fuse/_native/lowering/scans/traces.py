"""Trace of a state or a result of Scan: an array with a row for each step, or a ring buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.lowering.registry import NoRuleError
from pytensor_fuse._native.lowering.tensors import Tensor, element_of, scalar, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from pytensor_fuse._native.lowering.types import BufferId, Context, Index, Loop, Value


TOO_SHORT: Final = "Scan has a state of {0} rows, but needs {1} at the start"
_OTHER_SHAPE: Final = "Scan has a state with an axis of {1} elements, for which a step computes {0}"


class Trace:
    """A trace of a Scan that is being lowered.

    Parameters
    ----------
    context
        The lowering.
    buffer
        The buffer that holds the rows.
    n_before
        The number of rows before that of the first step.
    n_steps
        The number of steps.
    n_behind
        The distance of the furthest row behind its own that a step reads or writes.
    lags
        The initial values of the last steps, the latest first, if they are scalars in registers.
    wraps
        Whether a step writes to rows before the initial ones.

    Attributes
    ----------
    buffer
        The buffer that holds the rows.
    """

    def __init__(
        self,
        context: Context,
        buffer: BufferId,
        n_before: int,
        n_steps: Value,
        lags: list[Value] | None = None,
        n_behind: int = 0,
        *,
        wraps: bool = False,
    ) -> None:
        builder = context.builder
        self.buffer = buffer
        self._context = context
        self._builder = builder
        self._n_before = n_before
        self._size = builder.program.buffers[buffer].lengths[0]
        n_rows = builder.op("add", n_steps, builder.index(n_before + n_behind))
        # A row before the first one is the last one, as in a ring buffer.
        self._is_whole = not wraps and context.length(self._size) == context.length(n_rows)
        self._is_one = builder.number(self._size) == 1
        self._first_lags = lags
        self._lags: list[Value] = []
        self._step: Value | None = None
        self._position: Value | None = None
        self._last_position: Value | None = None
        self._out: Value | None = None
        self._last: Value | None = None

    @staticmethod
    def of_state(
        context: Context,
        state: Tensor,
        taps: tuple[Sequence[int], Sequence[int]],
        n_steps: Value,
        *,
        may_overwrite: bool,
        in_registers: bool,
    ) -> Trace:
        """Return the trace of a state, which starts with the initial rows.

        Parameters
        ----------
        context
            The lowering.
        state
            The initial rows.
        taps
            The rows that a step reads and those that it writes, relative to its own.
        n_steps
            The number of steps.
        may_overwrite
            Whether the op may overwrite the initial rows.
        in_registers
            Whether scalars may be kept in registers: steps read only rows before their own.
        """
        builder = context.builder
        reads, writes = taps
        n_before = -min(0, *reads)
        least = max(n_before, *reads, *writes, -min(writes, default=0), 1)
        size = context.length(state.lengths[0])
        has_rows = builder.op("ge", size, builder.index(least))
        has_lags = in_registers and state.ndim == 1
        if not (has_lags and n_before == 1):
            # Rows may be missing if there are no steps.
            has_rows = builder.op("or", has_rows, builder.op("eq", n_steps, builder.index(0)))
        builder.check(has_rows, ValueError, TOO_SHORT, size, builder.index(least))
        buffer = context.destination(state) if may_overwrite else None
        if buffer is None:
            buffer = context.copied(state, is_once=False)
        lags = _first_lags(context, buffer, n_before, n_steps) if has_lags else None
        n_behind, wraps = max(0, *reads, *writes), min(writes, default=0) < -n_before
        return Trace(context, buffer, n_before, n_steps, lags, n_behind, wraps=wraps)

    @staticmethod
    def of_results(
        context: Context, result: Tensor, size: Value, n_steps: Value, known: Container[Value]
    ) -> Trace:
        """Return the trace of results that no later step reads, after the inner graph is lowered.

        Parameters
        ----------
        context
            The lowering.
        result
            The result of a step.
        size
            The number of rows.
        n_steps
            The number of steps.
        known
            Lengths that are known to be nonnegative.

        Raises
        ------
        NoRuleError
            If the shape of a result depends on its step.
        """
        builder = context.builder
        depth = builder.n_open_blocks - 1
        lengths = [context.length(one) for one in result.lengths]
        # The checks of a computed length are within steps, of which there may be none.
        lengths = [
            one
            if one in known or builder.number(one) is not None
            else builder.op("maximum", one, builder.index(0))
            for one in lengths
        ]
        if any(builder.depth(one) >= depth for one in (size, *lengths)):
            raise NoRuleError("a result whose shape is computed in each step")
        buffer = builder.buffer("temporary", 0, result.dtype, (size, *lengths), is_once=False)
        if builder.n_open_blocks > 2:
            # Each iteration of the outer loop has a new trace.
            builder.allocate_around(buffer)
        return Trace(context, buffer, 0, n_steps)

    # In the loop

    def begin(self, loop: Loop) -> None:
        """Begin a step."""
        builder = self._builder
        self._step = loop.index
        if not (self._is_whole or self._is_one):
            self._position = builder.carried("i64")
        if self._first_lags is not None:
            dtype = builder.program.buffers[self.buffer].dtype
            self._lags = [builder.carried(dtype) for _ in self._first_lags]

    def at_tap(self, tap: int) -> Tensor:
        """Return the row that a step reads."""
        if self._lags:
            return scalar(self._builder, self._lags[-tap - 1])
        return element_of(self._builder, stored(self._builder, self.buffer), self._row(tap))

    def _row(self, tap: int) -> Value:
        builder = self._builder
        assert self._step is not None
        if self._is_one:
            return builder.index(0)
        if self._position is None:
            return builder.op("add", self._step, builder.index(self._n_before + tap))
        row = builder.op("add", self._position, builder.index(tap))
        if tap < 0:
            is_before = builder.op("lt", row, builder.index(0))
            return builder.op("select", is_before, builder.op("add", row, self._size), row)
        if tap == 0:
            return row
        is_behind = builder.op("ge", row, self._size)
        return builder.op("select", is_behind, builder.op("sub", row, self._size), row)

    def prepared(self, result: Tensor, tap: int) -> Callable[[], None]:
        """Compute the row that a step writes, and return the emitter of its store."""
        context, builder = self._context, self._builder
        about = builder.program.buffers[self.buffer]
        if result.ndim == 0:
            value = builder.cast(result.at(()), about.dtype)
            if self._first_lags is not None:
                self._out = value
                if self._is_one:
                    return lambda: None
            return lambda: builder.store(self.buffer, (self._row(tap),), value, is_guarded=True)
        lengths = [
            context.require_equal(own, length, ValueError, _OTHER_SHAPE)
            for own, length in zip(result.lengths, about.lengths[1:], strict=True)
        ]
        result = settled(context, result)

        def write() -> None:
            row = self._row(tap)

            def store(index: Index) -> None:
                builder.store(self.buffer, (row, *index), result.at(index), is_guarded=True)

            context.nest(lengths, store)

        return write

    def carry_on(self, loop: Loop) -> None:
        """End a step."""
        builder = self._builder
        if self._position is not None:
            after = builder.op("add", self._position, builder.index(1))
            zero = builder.index(0)
            is_end = builder.op("ge", after, self._size)
            after = builder.op("select", is_end, zero, after)
            first = builder.index(self._n_before)
            is_end = builder.op("ge", first, self._size)
            first = builder.op("select", is_end, zero, first)
            self._last_position = builder.carry(loop, self._position, first, after)
        if self._first_lags is not None:
            assert self._out is not None
            nexts = [self._out, *self._lags]
            outs = [
                builder.carry(loop, lag, first, following)
                for lag, first, following in zip(self._lags, self._first_lags, nexts, strict=False)
            ]
            self._last = outs[0]

    # After the loop

    def finished(self, n_done: Value, *, is_while: bool) -> Tensor:
        """Return the trace in the order of the steps, with zeros for missing steps.

        Parameters
        ----------
        n_done
            The number of completed steps.
        is_while
            Whether steps may end the loop: the trace then ends with the last completed one.
        """
        builder, context, buffer = self._builder, self._context, self.buffer
        if self._is_one and self._last is not None:
            builder.store(buffer, (builder.index(0),), self._last, is_guarded=True)
        held = stored(builder, buffer)
        if self._is_whole and not is_while:
            return held
        size, end = self._size, builder.op("add", n_done, builder.index(self._n_before))
        lengths = list(held.lengths)
        if is_while:
            lengths[0] = builder.op("minimum", size, end)
        else:
            n_left = builder.op("maximum", builder.op("sub", size, end), builder.index(0))
            zero = builder.constant(held.dtype, 0)
            with builder.loop(n_left) as loop:
                row = builder.op("add", end, loop.index)
                context.nest(
                    lengths[1:],
                    lambda index: builder.store(buffer, (row, *index), zero, is_guarded=True),
                )
        if self._last_position is None:
            return held if not is_while else Tensor(held.dtype, lengths, held.at)
        wraps = builder.op("lt", size, end)
        shift = builder.op("select", wraps, self._last_position, builder.index(0))

        def at(index: Index) -> Value:
            row = builder.op("add", index[0], shift)
            is_behind = builder.op("ge", row, size)
            row = builder.op("select", is_behind, builder.op("sub", row, size), row)
            return held.at((row, *index[1:]))

        return Tensor(held.dtype, lengths, at)


def _first_lags(context: Context, buffer: BufferId, n_before: int, n_steps: Value) -> list[Value]:
    """Return the initial rows of a trace of scalars, the latest first."""
    builder = context.builder

    def rows() -> list[Value]:
        return [
            builder.load(buffer, (builder.index(n_before - lag),), is_guarded=True)
            for lag in range(1, n_before + 1)
        ]

    about = builder.program.buffers[buffer]
    size = context.length(about.lengths[0])
    is_whole = size == context.length(builder.op("add", n_steps, builder.index(n_before)))
    if n_before == 1 or is_whole or builder.number(size) is not None:
        return rows()
    has_rows = builder.op("ge", size, builder.index(n_before))
    nothing = [builder.constant(about.dtype, 0)] * n_before
    return context.branch(has_rows, rows, lambda: nothing)


def settled(context: Context, tensor: Tensor) -> Tensor:
    """Return a step's result, computed now: it may depend on rows that the step overwrites."""
    if tensor.ndim == 0:
        return scalar(context.builder, tensor.at(()))
    return context.materialized(tensor.dtype, tensor.lengths, tensor.at)
