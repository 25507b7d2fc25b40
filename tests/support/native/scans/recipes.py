"""Random Scans, and the same loops written out in NumPy.

A Scan is built from a `Recipe`. Every recipe is valid: it consists of small integers, taken modulo
the number of choices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from hypothesis import strategies as st
from pytensor.scan import until
from pytensor.tensor.type import TensorType

from support.native.scans.steps import Item, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable

# The dtype (None: the recipe's) and the number of axes of a step's arguments or results.
_KINDS: tuple[tuple[str | None, int], ...] = (
    *((None, 1), (None, 0), (None, 2), ("int64", 0), ("bool", 1), ("int32", 1), ("float32", 1)),
)
_TAPS = ((-1,), (-1,), (-2, -1), (-3,), (-3, -1), (-1, -2, -4))
_TAPS_OF_SEQUENCES = ((0,), (0,), (0, 1), (-1, 0), (-2, 1))
# The reads of a trace, and the number of steps that each needs.
_READS: tuple[tuple[Any, int], ...] = (
    *((slice(None), 0), (-1, 1), (slice(-2, None), 2), (slice(-5, None), 5), (0, 1)),
    *((slice(1, None, 2), 0), (slice(-1, None), 1)),
)
_N_STEPS = (3, 1, 2, 0, 5, 8, 13)


class Recipe(NamedTuple):
    """A recipe for a Scan.

    Attributes
    ----------
    dtype
        The dtype of most arrays.
    width
        The length of rows.
    n_steps
        The maximum number of steps.
    are_steps_given
        Whether the number of steps is an input.
    is_static
        Whether types state the lengths.
    states, sequences
        The kind and the taps of each.
    results
        The kind of each result without a state.
    tape
        The operations of a step: each with two operands.
    picks
        The results of a step.
    reads
        The rows of each trace that are returned.
    ends
        Whether a step may end the loop; if so, the value that decides.
    order
        How often gradients are taken.
    truncates
        The number of steps after which gradients are truncated; 0 for no truncation.
    is_backwards, is_strict
        As for ``pytensor.scan``.
    has_more
        Whether there is elementwise work on the arguments and the results of the Scan.
    """

    dtype: str = "float64"
    width: int = 3
    n_steps: int = 3
    are_steps_given: bool = False
    is_static: bool = False
    states: tuple[tuple[int, int], ...] = ((0, 0),)
    sequences: tuple[tuple[int, int], ...] = ()
    results: tuple[int, ...] = ()
    tape: tuple[tuple[int, int, int], ...] = ()
    picks: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    ends: int | None = None
    order: int = 0
    truncates: int = 0
    is_backwards: bool = False
    is_strict: bool = False
    has_more: bool = False


class Case(NamedTuple):
    """A graph with a Scan, values for its inputs, and the results of a NumPy loop.

    Attributes
    ----------
    inputs, outputs
        The graph.
    values
        Values of the inputs.
    expected
        Values of the first outputs; gradients come after them.
    n_steps
        The maximum number of steps.
    """

    inputs: list[Any]
    outputs: list[Any]
    values: list[Any]
    expected: list[np.ndarray]
    n_steps: int


@st.composite
def recipes(draw: Any, *, order: int = 0) -> Recipe:
    """Draw a recipe whose gradients are taken a given number of times."""
    number = st.integers(0, 63)
    numbers = st.lists(number, max_size=3).map(tuple)
    pairs = st.lists(st.tuples(number, number), max_size=2).map(tuple)
    states, sequences = draw(pairs), draw(pairs)
    results = draw(st.lists(number, max_size=2).map(tuple))
    if not (states and (results or draw(st.booleans()))) and not sequences:
        states = ((draw(number), draw(number)),)
    if not states and not results:
        results = (draw(number),)
    return Recipe(
        dtype=draw(st.sampled_from(["float64", "float64", "float32"])),
        width=draw(st.sampled_from([3, 1, 2, 5, 0, 9])),
        n_steps=draw(st.sampled_from(_N_STEPS)),
        are_steps_given=draw(st.booleans()),
        is_static=draw(st.booleans()),
        states=states,
        sequences=sequences,
        results=results,
        tape=draw(st.lists(st.tuples(number, number, number), max_size=6 - 2 * order).map(tuple)),
        picks=draw(numbers),
        reads=draw(numbers),
        ends=draw(st.none() | number),
        order=order,
        truncates=draw(st.sampled_from([0, 0, 2])) if order else 0,
        is_backwards=draw(st.booleans()),
        is_strict=draw(st.booleans()),
        has_more=draw(st.booleans()),
    )


def build(recipe: Recipe) -> Case:
    """Build the graph of a recipe, and run its loop."""
    return _Writer(recipe).case()


class _Writer:
    """Builds the graph of a recipe."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.rng = np.random.default_rng(len(recipe.tape) + 7 * recipe.width)
        self.inputs: list[Any] = []
        self.values: list[Any] = []
        self.n_steps = max(recipe.n_steps, 1) if recipe.ends is not None else recipe.n_steps
        self.matrix = self._given(recipe.dtype, (recipe.width, recipe.width))
        self.others = [
            self._given(dtype, shape)
            for dtype, shape in (
                (recipe.dtype, ()),
                ("float32", ()),
                (recipe.dtype, self._shape(1)),
            )
        ]
        self.kinds = [self._kind(kind) for kind, _ in recipe.states]
        self.taps = [_TAPS[taps % len(_TAPS)] for _, taps in recipe.states]
        self.firsts = [
            self._given(dtype, (*([-min(taps)] if taps != (-1,) else []), *self._shape(ndim)))
            for (dtype, ndim), taps in zip(self.kinds, self.taps, strict=True)
        ]
        self.row_taps = [
            _TAPS_OF_SEQUENCES[taps % len(_TAPS_OF_SEQUENCES)] for _, taps in recipe.sequences
        ]
        self.rows = []
        for (kind, _), taps in zip(recipe.sequences, self.row_taps, strict=True):
            dtype, ndim = self._kind(kind)
            length = self.n_steps + max(*taps, 0) - min(*taps, 0)
            rows = self._given(dtype, (length, *self._shape(ndim)))
            if recipe.has_more and dtype.startswith("float"):
                rows = Item(pt.sin(rows.symbolic), np.sin(rows.numeric))
            self.rows.append(rows)
        self.result_kinds = [self._kind(kind) for kind in recipe.results]

    def _kind(self, number: int) -> tuple[str, int]:
        dtype, ndim = _KINDS[number % len(_KINDS)]
        return dtype or self.recipe.dtype, ndim

    def _shape(self, ndim: int) -> tuple[int, ...]:
        return (self.recipe.width, 2)[:ndim]

    def _given(self, dtype: str, shape: tuple[int, ...]) -> Item:
        """Add an input."""
        if dtype == "bool":
            value = np.asarray(self.rng.integers(0, 2, shape), dtype=bool)
        elif dtype.startswith("int"):
            value = np.asarray(self.rng.integers(0, 5, shape), dtype=dtype)
        else:
            value = np.asarray(self.rng.normal(size=shape), dtype=dtype)
        # A static length of 1 makes an axis broadcastable, which the types in a step do not state.
        is_static = self.recipe.is_static and self.recipe.width != 1
        lengths = shape if is_static else (None,) * len(shape)
        variable = TensorType(dtype, lengths)(f"x{len(self.inputs)}")
        self.inputs.append(variable)
        self.values.append(value)
        return Item(variable, value)

    def case(self) -> Case:
        """Return the graph, and the results of the loop."""
        steps: Any = self.n_steps
        if self.recipe.are_steps_given:
            steps = pt.lscalar("steps")
            self.inputs.append(steps)
            self.values.append(np.int64(self.n_steps))
        outputs, expected = [], []
        pairs = zip(self._scan(steps), self._loop(), strict=True)
        for at, (trace, rows) in enumerate(pairs):
            # Rewriting keeps five rows for the last five of three. If a step may end the loop, it
            # keeps too few, or reads nonexistent rows.
            most = self.n_steps if self.recipe.ends is None else -1
            fitting = [read for read, least in _READS if least <= most] or [slice(None), -1]
            reads = [fitting[one % len(fitting)] for one in self.recipe.reads[at : at + 2]]
            for read in reads or [slice(None)]:
                outputs.append(trace[read])
                expected.append(np.asarray(rows[read]))
                if self.recipe.has_more and rows.dtype.kind == "f":
                    outputs[-1], expected[-1] = pt.cos(outputs[-1]), np.cos(expected[-1])
        return Case(
            self.inputs, outputs + self._gradients(outputs), self.values, expected, self.n_steps
        )

    def _gradients(self, outputs: Sequence[Variable]) -> list[Any]:
        wanted = [one for one in self.inputs if one.type.dtype.startswith("float")]
        found = list(outputs)
        for _ in range(self.recipe.order):
            costs = [pt.sin(one).sum() for one in found if one.type.dtype.startswith("float")]
            found = pytensor.grad(
                pt.add(pt.constant(0.0), pt.constant(0.0), *costs),
                wanted,
                disconnected_inputs="ignore",
                return_disconnected="zero",
            )
        return found if self.recipe.order else []

    def _step(self, given: Sequence[Item], others: Sequence[Item], matrix: Item) -> list[Item]:
        """Return the results of a step, the exit condition last."""
        recipe = self.recipe
        step = Step(recipe, given, others, matrix)
        picks = [*recipe.picks, *range(8)]
        kinds = [*self.kinds, *self.result_kinds]
        outs = [step.out(kind, pick) for kind, pick in zip(kinds, picks, strict=False)]
        return outs if recipe.ends is None else [*outs, step.end(recipe.ends)]

    def _scan(self, steps: Any) -> list[Any]:
        recipe = self.recipe
        shapes = [
            np.ones(one.numeric.shape[1:], one.dtype)
            for one, taps in zip(self.rows, self.row_taps, strict=True)
            for _ in taps
        ]
        shapes += [
            np.ones(self._shape(ndim), dtype)
            for (dtype, ndim), taps in zip(self.kinds, self.taps, strict=True)
            for _ in taps
        ]
        constants = [*self.others, self.matrix]

        def step(*args: Any) -> Any:
            given = [Item(*pair) for pair in zip(args, shapes, strict=False)]
            own = args[len(shapes) :] or [one.symbolic for one in constants]
            pairs = zip(own, constants, strict=True)
            *others, matrix = [Item(one, other.numeric, False) for one, other in pairs]
            outs = [one.symbolic for one in self._step(given, others, matrix)]
            return outs if recipe.ends is None else (outs[:-1], until(outs[-1]))

        return pytensor.scan(
            step,
            sequences=[
                {"input": one.symbolic, "taps": list(taps)}
                for one, taps in zip(self.rows, self.row_taps, strict=True)
            ],
            outputs_info=[
                one.symbolic if taps == (-1,) else {"initial": one.symbolic, "taps": list(taps)}
                for one, taps in zip(self.firsts, self.taps, strict=True)
            ]
            + [None] * len(self.result_kinds),
            # Otherwise, the step finds the constants itself.
            non_sequences=[one.symbolic for one in constants] if recipe.is_strict else [],
            n_steps=steps,
            truncate_gradient=recipe.truncates or -1,
            go_backwards=recipe.is_backwards,
            strict=recipe.is_strict,
            return_list=True,
            return_updates=False,
        )

    def _loop(self) -> list[np.ndarray]:
        """Return the expected results of the Scan."""
        recipe = self.recipe
        traces = [
            [one.numeric] if taps == (-1,) else list(one.numeric)
            for one, taps in zip(self.firsts, self.taps, strict=True)
        ]
        traces += [[] for _ in self.result_kinds]
        numeric = [Item(None, one.numeric, False) for one in self.others]
        n_before = [-min(taps) for taps in self.taps] + [0] * len(self.result_kinds)
        for number in range(self.n_steps):
            given = [
                row[-1 - number - (max(*taps, 0) - tap)]
                if recipe.is_backwards
                else row[number - min(*taps, 0) + tap]
                for row, taps in zip([one.numeric for one in self.rows], self.row_taps, strict=True)
                for tap in taps
            ]
            given += [
                trace[len(trace) + tap]
                for trace, taps in zip(traces, self.taps, strict=False)
                for tap in taps
            ]
            items = [Item(None, np.asarray(one)) for one in given]
            outs = self._step(items, numeric, Item(None, self.matrix.numeric, False))
            for trace, out in zip(traces, outs, strict=False):
                trace.append(out.numeric)
            if recipe.ends is not None and outs[-1].numeric:
                break
        kinds = [*self.kinds, *self.result_kinds]
        return [
            np.array(trace[n:], dtype).reshape(-1 if trace[n:] else 0, *self._shape(ndim))
            if self.recipe.width or not trace[n:]
            else np.array(trace[n:], dtype)
            for trace, n, (dtype, ndim) in zip(traces, n_before, kinds, strict=True)
        ]
