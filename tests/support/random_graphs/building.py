"""Random FunctionGraphs that shrink.

A graph is built from a `Program`: a list of small integers, taken modulo the number of choices at
each point. Every program is therefore valid, deleting a step or lowering an integer gives a smaller
valid program, and the ``repr`` of a failing program can be pasted into a test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.scalar.basic import Composite, add, float64, mul, sub
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import TensorType

from pytensor_fuse import plan_fusion

N, M = 3, 4
"""Run-time lengths of the dimensions that are not broadcast. Neither is 1."""

LARGEST = 50.0
"""Values stay below this, so that rounding cannot grow into a visible difference."""

Step = tuple[int, int, int, int]

INPUT_TYPES: tuple[tuple[str, tuple[int | None, ...], tuple[int, ...]], ...] = (
    ("float64", (None,), (N,)),
    ("float64", (None, None), (N, M)),
    ("float64", (), ()),
    ("float64", (N,), (N,)),
    ("float64", (None,), (M,)),
    ("float64", (1, None), (1, M)),
    ("float64", (None, 1), (N, 1)),
    ("float64", (N, M), (N, M)),
    ("float64", (1, M), (1, M)),
    ("float64", (1,), (1,)),
    ("float32", (None,), (N,)),
    ("float32", (None, None), (N, M)),
    ("int64", (None,), (N,)),
    ("int64", (), ()),
    ("bool", (None,), (N,)),
    ("complex128", (None,), (N,)),
)
N_REAL_INPUT_TYPES = len(INPUT_TYPES) - 1


@dataclass(frozen=True)
class Program:
    """A recipe for a FunctionGraph."""

    inputs: tuple[int, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...] = ()
    plain: bool = False
    """Only float64 vectors of one type: dense in cycles, cheap to build."""


@dataclass(frozen=True)
class Case:
    """A graph with values for its inputs, in the order of ``fgraph.inputs``."""

    fgraph: FunctionGraph
    values: list[np.ndarray]


def shapes_of(case: Case) -> dict[Variable, tuple[int, ...]]:
    """Return the shapes of the inputs' values."""
    return {v: a.shape for v, a in zip(case.fgraph.inputs, case.values, strict=True)}


@dataclass
class _Value:
    """A variable with the known properties of its run-time value."""

    var: Variable
    shape: tuple[int, ...]
    bound: float
    exact: bool
    """Whether every backend computes the same bits, so that it can be compared."""

    @property
    def dtype(self) -> str:
        return self.var.type.dtype

    @property
    def is_float(self) -> bool:
        return self.dtype in ("float32", "float64")


def _input_array(index: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(index)
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape), dtype=bool)
    if dtype == "int64":
        return np.asarray(rng.integers(-4, 5, shape), dtype=np.int64)
    values = rng.uniform(-2.0, 2.0, shape)
    if dtype == "complex128":
        return np.asarray(values + 1j * rng.uniform(-2.0, 2.0, shape))
    return np.asarray(values, dtype=dtype)


def _broadcasts(a: _Value, b: _Value) -> bool:
    """Whether Elemwise accepts both, given the types and the run-time lengths."""
    for i in range(1, min(len(a.shape), len(b.shape)) + 1):
        if a.shape[-i] == b.shape[-i]:
            continue
        one = a if a.shape[-i] == 1 else b
        if one.shape[-i] != 1 or not one.var.type.broadcastable[-i]:
            return False
    return True


def _joint_shape(*values: _Value) -> tuple[int, ...]:
    return np.broadcast_shapes(*(value.shape for value in values))


def composite_of_two(kind: int) -> Composite:
    x, y = float64("x"), float64("y")
    outputs: list[Variable] = [mul(sub(x, y), x)]
    if kind % 2:
        outputs.append(add(x, y))
    return Composite([x, y], outputs)


SAFE_UNARY: tuple[Callable[[Variable], Variable], ...] = (pt.sin, pt.cos, pt.tanh, pt.sigmoid)


@dataclass
class _Builder:
    program: Program
    pool: list[_Value] = field(default_factory=list)
    inputs: list[Variable] = field(default_factory=list)
    arrays: list[np.ndarray] = field(default_factory=list)

    # Choices ------------------------------------------------------------------------------

    def recent(self, number: int, keep: Callable[[_Value], bool] | None = None) -> _Value | None:
        """Return the ``number``-th most recent variable that satisfies ``keep``."""
        candidates = [v for v in reversed(self.pool) if keep is None or keep(v)]
        return candidates[number % len(candidates)] if candidates else None

    def bounded_float(self, number: int) -> _Value | None:
        """Return a real variable; a Boolean or integer one is cast to float."""
        found = self.recent(number, lambda v: v.dtype != "complex128")
        if found is None or found.is_float:
            return found
        return self.add(pt.cast(found.var, "float64"), found.shape, found.bound, found.exact)

    def add(
        self, var: Variable, shape: tuple[int, ...], bound: float, exact: bool = False
    ) -> _Value:
        value = _Value(var, shape, bound, exact)
        self.pool.append(value)
        return value

    # Steps --------------------------------------------------------------------------------

    def unary(self, a: int, b: int, c: int) -> None:
        x = self.bounded_float(a)
        if x is None:
            return
        kind = b % 8
        if kind == 4:
            self.add(-x.var, x.shape, x.bound, x.exact)
        elif kind == 5:
            self.add(abs(x.var), x.shape, x.bound, x.exact)
        elif kind == 6 and x.bound**2 < LARGEST:
            self.add(pt.sqr(x.var), x.shape, x.bound**2)
        elif kind == 7 and np.exp(x.bound) < LARGEST:
            self.add(pt.exp(x.var), x.shape, float(np.exp(x.bound)))
        else:
            self.add(SAFE_UNARY[kind % 4](x.var), x.shape, 1.0)

    def binary(self, a: int, b: int, c: int) -> None:
        x = self.recent(a)
        if x is None:
            return
        y = self.recent(b, lambda v: _broadcasts(x, v))
        if y is None:
            return
        shape = _joint_shape(x, y)
        exact = False
        if "complex128" in (x.dtype, y.dtype):
            kind = c % 3
        elif x.dtype == y.dtype == "bool":
            kind = 5 + c % 2
        else:
            kind = c % 5
        if kind == 0 and x.bound + y.bound < LARGEST:
            self.add(x.var + y.var, shape, x.bound + y.bound)
        elif kind == 1 and x.bound * y.bound < LARGEST:
            self.add(x.var * y.var, shape, x.bound * y.bound)
        elif kind == 2 and x.bound + y.bound < LARGEST:
            self.add(x.var - y.var, shape, x.bound + y.bound)
        elif kind in (0, 1, 2):
            self.pool.append(_Value(0.01 * x.var, x.shape, 0.01 * x.bound, False))
        else:
            exact = x.exact and y.exact
            op = {3: pt.maximum, 4: pt.minimum, 5: pt.and_, 6: pt.or_}[kind]
            self.add(op(x.var, y.var), shape, max(x.bound, y.bound), exact)

    def with_itself(self, a: int, b: int, c: int) -> None:
        x = self.bounded_float(a)
        if x is None:
            return
        if b % 2 and 2 * x.bound < LARGEST:
            self.add(x.var + x.var, x.shape, 2 * x.bound)
        elif x.bound**2 < LARGEST:
            self.add(x.var * x.var, x.shape, x.bound**2)
        else:
            self.add(pt.maximum(x.var, x.var), x.shape, x.bound, x.exact)

    def barrier(self, a: int, b: int, c: int) -> None:
        """Add a node that cannot be fused and preserves the shape."""
        x = self.recent(a, lambda v: bool(v.shape))
        if x is None:
            return
        if b % 3 == 1 and x.is_float and x.bound * x.shape[0] < LARGEST:
            self.add(pt.cumsum(x.var, axis=0), x.shape, x.bound * x.shape[0])
        elif b % 3 == 2 and x.is_float:
            self.add(pt.sort(x.var, axis=-1), x.shape, x.bound, x.exact)
        else:
            self.add(x.var[::-1], x.shape, x.bound, x.exact)

    def dimshuffle(self, a: int, b: int, c: int) -> None:
        if b % 2:
            x = self.recent(a, lambda v: len(v.shape) == 1)
            if x is not None:
                if c % 2:
                    self.add(x.var[None, :], (1, *x.shape), x.bound, x.exact)
                else:
                    self.add(x.var[:, None], (*x.shape, 1), x.bound, x.exact)
            return
        x = self.recent(a, lambda v: len(v.shape) == 2)
        if x is not None:
            self.add(x.var.T, x.shape[::-1], x.bound, x.exact)

    def reduce(self, a: int, b: int, c: int) -> None:
        x = self.recent(a, lambda v: bool(v.shape) and v.is_float)
        if x is None:
            return
        axis = b % len(x.shape)
        keepdims = bool(c % 2)
        shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape) if keepdims or i != axis)
        if b // 2 % 2 == 0 and x.bound * x.shape[axis] < LARGEST:
            out = pt.sum(x.var, axis=axis, keepdims=keepdims)
            self.add(out, shape, x.bound * x.shape[axis])
        else:
            out = pt.max(x.var, axis=axis, keepdims=keepdims)
            self.add(out, shape, x.bound, x.exact)

    def switch(self, a: int, b: int, c: int) -> None:
        x = self.recent(a)
        if x is None:
            return
        y = self.recent(b, lambda v: _broadcasts(x, v))
        if y is None:
            return
        condition = self.recent(
            c,
            lambda v: (
                v.exact
                and v.dtype != "complex128"
                and len(v.shape) <= max(len(x.shape), len(y.shape))
                and _broadcasts(v, x)
                and _broadcasts(v, y)
            ),
        )
        if condition is None:
            return
        var = pt.switch(pt.lt(condition.var, 1), x.var, y.var)
        self.add(var, _joint_shape(condition, x, y), max(x.bound, y.bound), x.exact and y.exact)

    def constant(self, a: int, b: int, c: int) -> None:
        x = self.bounded_float(a)
        if x is None:
            return
        kind = b % 4
        if kind == 0:
            constant = pt.constant(0.5)
        elif kind == 1:
            constant = pt.constant(np.full(x.shape, 0.25))
        elif kind == 2:
            constant = pt.constant(_input_array(100 + c % 3, "float64", x.shape))
        else:
            constant = pt.constant(np.array(2))
        self.pool.append(_Value(constant, constant.data.shape, 2.0, True))
        if 2 * x.bound < LARGEST:
            self.add(x.var * constant, x.shape, 2 * x.bound)

    def cast(self, a: int, b: int, c: int) -> None:
        x = self.recent(a, lambda v: v.exact and v.dtype != "complex128")
        if x is None:
            return
        dtype = ("float32", "float64", "int64", "bool")[b % 4]
        self.add(pt.cast(x.var, dtype), x.shape, x.bound + 1.0, exact=True)

    def without_c_code(self, a: int, b: int, c: int) -> None:
        x = self.bounded_float(a)
        if x is None or x.dtype != "float64":
            return
        # Inside (0.2, 0.8), far from the poles.
        p = pt.constant(0.5) + pt.constant(0.3) * pt.tanh(x.var)
        if b % 2:
            self.add(pt.gammaincinv(pt.constant(2.0), p), x.shape, 3.5)
        else:
            self.add(pt.erfcinv(p), x.shape, 1.0)

    def composite(self, a: int, b: int, c: int) -> None:
        x = self.recent(a, lambda v: v.dtype == "float64" and v.bound < 5)
        if x is None:
            return
        y = self.recent(
            b,
            lambda v: (
                v.dtype == "float64"
                and v.bound < 5
                and len(v.shape) == len(x.shape)
                and _broadcasts(x, v)
            ),
        )
        if y is None:
            return
        outputs = Elemwise(composite_of_two(c))(x.var, y.var, return_list=True)
        shape = _joint_shape(x, y)
        self.add(outputs[0], shape, (x.bound + y.bound) * x.bound)
        if len(outputs) == 2 and c // 2 % 2:
            self.add(outputs[1], shape, x.bound + y.bound)

    def dot(self, a: int, b: int, c: int) -> None:
        x = self.recent(a, lambda v: v.dtype == "float64" and len(v.shape) in (1, 2))
        if x is None:
            return
        bound = x.bound**2 * x.shape[-1]
        if bound >= LARGEST:
            return
        if len(x.shape) == 1:
            self.add(pt.dot(x.var, x.var), (), bound)
        else:
            self.add(pt.dot(x.var, x.var.T), (x.shape[0], x.shape[0]), bound)

    def subtensor(self, a: int, b: int, c: int) -> None:
        x = self.recent(a, lambda v: bool(v.shape))
        if x is not None:
            self.add(x.var[0], x.shape[1:], x.bound, x.exact)

    def name(self, a: int, b: int, c: int) -> None:
        x = self.recent(a)
        if x is not None and not isinstance(x.var, Constant):
            x.var.name = f"name{b % 5}"

    def widen(self, a: int, b: int, c: int) -> None:
        """Add an Apply whose output type is less specific than its Op would infer."""
        x = self.bounded_float(a)
        if x is None:
            return
        inferred = pt.sin(x.var).owner
        output = TensorType(x.dtype, (None,) * len(x.shape))()
        Apply(inferred.op, inferred.inputs, [output])
        self.add(output, x.shape, 1.0)

    def parts_of_complex(self, a: int, b: int, c: int) -> None:
        x = self.recent(a, lambda v: v.dtype == "complex128")
        if x is None:
            return
        self.add((pt.real, pt.imag, abs)[b % 3](x.var), x.shape, x.bound)

    # Programs -----------------------------------------------------------------------------

    def steps(self) -> tuple[Callable[[int, int, int], None], ...]:
        if self.program.plain:
            return (self.unary, self.binary, self.barrier, self.binary, self.with_itself)
        return (
            self.unary,
            self.binary,
            self.with_itself,
            self.barrier,
            self.binary,
            self.unary,
            self.dimshuffle,
            self.reduce,
            self.constant,
            self.binary,
            self.switch,
            self.cast,
            self.composite,
            self.subtensor,
            self.name,
            self.without_c_code,
            self.dot,
            self.parts_of_complex,
            self.widen,  # Last, so that it can be left out.
        )

    def build(self) -> Case:
        program = self.program
        for index, kind in enumerate(program.inputs):
            dtype, static, shape = INPUT_TYPES[0 if program.plain else kind % len(INPUT_TYPES)]
            var = TensorType(dtype, static)(f"in{index}")
            self.inputs.append(var)
            self.arrays.append(_input_array(index, dtype, shape))
            bound = 4.0 if dtype == "int64" else 3.0
            self.pool.append(_Value(var, shape, bound, exact=True))
        steps = self.steps()
        for kind, a, b, c in program.steps:
            steps[kind % len(steps)](a, b, c)
        fgraph = FunctionGraph(self.inputs, self._outputs(), clone=False)
        return Case(fgraph, self.arrays)

    def _outputs(self) -> list[Variable]:
        """Return the unread variables, and those that the program requests in addition."""
        read: set[Variable] = set()
        pending = [value.var for value in self.pool]
        nodes: set[Apply] = set()
        while pending:
            node = pending.pop().owner
            if node is not None and node not in nodes:
                nodes.add(node)
                read.update(node.inputs)
                pending.extend(node.inputs)
        outputs = [v.var for v in self.pool if v.var.owner is not None and v.var not in read]
        for number in self.program.outputs:
            wanted = self.recent(number)
            if wanted is not None:
                outputs.append(wanted.var)
        return outputs


N_KINDS = len(_Builder(Program((), ())).steps())
N_PLAIN_KINDS = len(_Builder(Program((), (), plain=True)).steps())


def build(program: Program) -> Case:
    """Build the graph of a program; the same program always gives the same graph."""
    return _Builder(program).build()


def build_fused_and_not(program: Program, max_operands: int) -> Case:
    """Build the graph of a program on the same inputs twice: its outputs fused, then unfused."""
    fused, copy = build(program), build(program)
    plan_fusion(fused.fgraph, max_operands=max_operands).apply()
    inputs = fused.fgraph.inputs
    unfused = clone_replace(copy.fgraph.outputs, dict(zip(copy.fgraph.inputs, inputs, strict=True)))
    return Case(FunctionGraph(inputs, [*fused.fgraph.outputs, *unfused], clone=True), fused.values)
