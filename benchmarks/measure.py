"""Fair measurements of stock PyTensor's fusion and of ours, side by side in one process.

A round times both sides once, each on its own fresh copy of the graph. Copies are made, garbage is
collected and answers are checked outside the clock. The sides take turns in going first, and the
figure of a run is the median over the rounds of stock's time divided by ours, so that a change of
the machine's speed between rounds falls on both.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import reduce
from statistics import median
from types import CellType, CodeType, FunctionType
from typing import Any
from unittest import mock

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.executor import Function
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.features import Feature, ReplaceValidate
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import MergeFeature, MergeOptimizer
from pytensor.link.basic import PerformLinker
from pytensor.scalar.basic import Add, Composite, Mul, ScalarOp
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.rewriting.elemwise import FusionOptimizer

import pytensor_fuse
from graphs import Reference
from pytensor_fuse import plan_fusion
from pytensor_fuse._activation.passes.merging import MergeRewriter
from pytensor_fuse._fusion import fuse
from pytensor_fuse.reports import FusionPlan

Subgraph = tuple[tuple[Variable, ...], tuple[Variable, ...]]

# Differences of this size, relative to the largest element, come from the order of additions.
ROUNDING = 1e-9

with pytensor_fuse.enabled(False):
    _stock_apply = FusionOptimizer.apply


@dataclass(frozen=True)
class Tally:
    """What a graph computes in Elemwise kernels, counted without the package's own statistics."""

    nodes: int
    kernels: int
    arrays: int


@dataclass(frozen=True)
class Timings:
    """Seconds of both sides in each round."""

    stock: tuple[float, ...]
    ours: tuple[float, ...]

    @classmethod
    def of_results(
        cls, results: Sequence[tuple[dict[str, Any], dict[str, Any]]], key: str
    ) -> Timings:
        """From pairs of what processes reported, stock's and ours."""
        return cls(tuple(stock[key] for stock, _ in results), tuple(o[key] for _, o in results))

    @property
    def ratio(self) -> float:
        """How many times faster ours is: the median of the rounds' ratios."""
        return median(s / o for s, o in zip(self.stock, self.ours, strict=True))

    def __str__(self) -> str:
        return (
            f"stock {format_seconds(median(self.stock))}, ours {format_seconds(median(self.ours))},"
            f" {self.ratio:.2f}x in {len(self.ours)} rounds"
        )


def stock_plan(fgraph: FunctionGraph) -> list[Subgraph]:
    """The subgraphs that stock would fuse, by stock's own planner and nothing else of its pass.

    The planner is a closure inside ``FusionOptimizer.apply``; it is built anew from its code.
    """
    code = _nested_code(_stock_apply.__code__, "find_fuseable_subgraphs")
    values = {"fgraph": fgraph}
    unknown = set(code.co_freevars) - set(values)
    if unknown:
        raise RuntimeError(
            f"find_fuseable_subgraphs of PyTensor {pytensor.__version__} uses {sorted(unknown)}; "
            "give stock_plan their values"
        )
    cells = tuple(CellType(values[name]) for name in code.co_freevars)
    planner = FunctionType(code, _stock_apply.__globals__, closure=cells)
    return list(planner(fgraph))


def our_plan(fgraph: FunctionGraph) -> FusionPlan:
    return plan_fusion(fgraph, target="c")


def stock_pass(fgraph: FunctionGraph) -> None:
    _stock_apply(FusionOptimizer(), fgraph)


def our_pass(fgraph: FunctionGraph) -> None:
    fuse.fuse(fgraph, "benchmark")


def copy(fgraph: FunctionGraph) -> FunctionGraph:
    """A fresh copy with the one feature that the pass asks for."""
    return FunctionGraph(fgraph.inputs, fgraph.outputs, clone=True, features=[ReplaceValidate()])


def tally(fgraph: FunctionGraph) -> Tally:
    """Count kernels (any Elemwise node) and the arrays that they read and write.

    A kernel reads its distinct non-constant inputs and writes its outputs that something uses.
    """
    kernels = [node for node in fgraph.apply_nodes if isinstance(node.op, Elemwise)]
    read = sum(
        len({inp for inp in node.inputs if not isinstance(inp, Constant)}) for node in kernels
    )
    written = sum(bool(fgraph.clients[out]) for node in kernels for out in node.outputs)
    return Tally(len(fgraph.apply_nodes), len(kernels), read + written)


def fused_tallies(fgraph: FunctionGraph) -> tuple[Tally, Tally]:
    """The tallies of two copies, one fused by stock and one by us."""
    stock, ours = copy(fgraph), copy(fgraph)
    stock_pass(stock)
    our_pass(ours)
    return tally(stock), tally(ours)


def is_worse(ours: Tally, stock: Tally) -> bool:
    """Whether we have more kernels than stock, or as many that move more arrays."""
    return (ours.kernels, ours.arrays) > (stock.kernels, stock.arrays)


def graph_at_fusion(reference: Reference, mode: Mode | str | None = None) -> FunctionGraph:
    """The graph as a compile hands it to the fusion pass, after the rewrites that come before."""
    seen = []

    def record(self: FusionOptimizer, fgraph: FunctionGraph) -> Any:
        seen.append(copy(fgraph))
        return _stock_apply(self, fgraph)

    inputs, outputs = reference.build()
    with pytensor_fuse.enabled(False), mock.patch.object(FusionOptimizer, "apply", record):
        pytensor.function(inputs, outputs, mode=mode)
    # Inner graphs are fused as well; the outer one is the largest.
    return max(seen, key=lambda fgraph: len(fgraph.apply_nodes))


def evaluate(fgraph: FunctionGraph, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of the graph by the ops' Python code, with every kernel taken apart again.

    NumPy's universal functions stop at 32 operands, which kernels of the larger graphs exceed.
    """
    plain = FunctionGraph(fgraph.inputs, _without_composites(fgraph), clone=False)
    run, inputs, outputs = PerformLinker().accept(plain).make_thunk()
    for container, value in zip(inputs, values, strict=True):
        container.storage[0] = value
    run()
    return [np.asarray(container.storage[0]) for container in outputs]


def compiled(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    *,
    ours: bool,
    mode: Mode | str | None = None,
    keep: bool = False,
    native: bool = False,
) -> Function:
    """Compile with the package or without; as if for the first time, unless ``keep`` is set.

    In Numba mode ours leaves the graph to Numba, too, unless ``native`` is set.
    """
    with side(ours=ours, native=native), pytensor_fuse.enabled(keep, "cache"):
        return pytensor.function(list(inputs), list(outputs), mode=mode)


def side(*, ours: bool, native: bool = False) -> AbstractContextManager[None]:
    """The block of one side: the package off, or on.

    Its machine code is off unless ``native`` is set, so that both sides differ in their rewriting
    and not in their compiler.
    """
    if not ours:
        return pytensor_fuse.enabled(False)
    return pytensor_fuse.enabled() if native else pytensor_fuse.enabled(False, "native")


def merging_seconds(reference: Reference, *, ours: bool, mode: Mode) -> float:
    """The time that merging takes in a compile: the passes, and what its feature does besides.

    The feature's callbacks are timed by PyTensor itself.
    """
    seconds = 0.0
    features: dict[MergeFeature, FunctionGraph] = {}
    depth = 0

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(rewriter: MergeOptimizer, fgraph: FunctionGraph) -> Any:
            nonlocal seconds, depth
            times = fgraph.execute_callbacks_times
            before = times.get(getattr(fgraph, "merge_feature", None), 0.0)
            depth += 1
            start = time.perf_counter()
            try:
                return function(rewriter, fgraph)
            finally:
                elapsed = time.perf_counter() - start
                depth -= 1
                if depth == 0:
                    # What the callbacks take within the pass is counted once.
                    within = times.get(fgraph.merge_feature, 0.0) - before
                    seconds += elapsed - within

        return run

    attach = FunctionGraph.attach_feature

    def attach_timed(fgraph: FunctionGraph, feature: Feature) -> None:
        nonlocal seconds
        if not isinstance(feature, MergeFeature):
            attach(fgraph, feature)
            return
        features[feature] = fgraph
        start = time.perf_counter()
        attach(fgraph, feature)
        seconds += time.perf_counter() - start

    with (
        mock.patch.object(MergeOptimizer, "apply", timed(MergeOptimizer.apply)),
        mock.patch.object(MergeRewriter, "apply", timed(MergeRewriter.apply)),
        mock.patch.object(FunctionGraph, "attach_feature", attach_timed),
        frozen_heap(),
    ):
        compiled(*reference.build(), ours=ours, mode=mode)
    return seconds + sum(
        fgraph.execute_callbacks_times[feature] for feature, fgraph in features.items()
    )


def largest_difference(ours: Sequence[np.ndarray], stock: Sequence[np.ndarray]) -> float:
    """The largest difference between results, relative to each result's largest element."""
    return max(_difference(a, b) for a, b in zip(ours, stock, strict=True))


def assert_same_answer(fgraph: FunctionGraph, values: Sequence[np.ndarray]) -> None:
    """Fuse two copies, and fail unless ours computes what stock's does with no worse a plan."""
    stock, ours = copy(fgraph), copy(fgraph)
    stock_pass(stock)
    our_pass(ours)
    stock_tally, our_tally = tally(stock), tally(ours)
    assert not is_worse(our_tally, stock_tally), f"ours {our_tally}, stock {stock_tally}"
    difference = largest_difference(evaluate(ours, values), evaluate(stock, values))
    assert difference <= ROUNDING, f"results differ by {difference:.1e}"


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Keep what exists now out of garbage collections within the block.

    A walk over the whole heap between two calls would empty the processor's caches for the next.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def seconds(
    function: Callable[..., Any], *args: Any, clock: Callable[[], float] = time.perf_counter
) -> float:
    """The time of one call; garbage left by what came before is collected first."""
    gc.collect()
    start = clock()
    result = function(*args)
    elapsed = clock() - start
    # The result lives until here: its destruction is not part of the time.
    del result
    return elapsed


def interleaved(
    stock: Callable[..., Any],
    ours: Callable[..., Any],
    prepare: Callable[[], Sequence[Any]] = tuple,
    *,
    rounds: int,
    warmup: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> Timings:
    """Time both sides in turns; ``prepare()`` makes the arguments of each call."""
    times: dict[str, list[float]] = {"stock": [], "ours": []}
    sides = [("stock", stock), ("ours", ours)]
    with frozen_heap():
        for number in range(-warmup, rounds):
            for name, function in sides if number % 2 == 0 else reversed(sides):
                elapsed = seconds(function, *prepare(), clock=clock)
                if number >= 0:
                    times[name].append(elapsed)
    return Timings(tuple(times["stock"]), tuple(times["ours"]))


def geometric_mean(ratios: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def format_seconds(value: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.3g} us"


def _nested_code(code: CodeType, name: str) -> CodeType:
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and constant.co_name == name:
            return constant
    raise RuntimeError(f"PyTensor {pytensor.__version__} has no {name} in {code.co_qualname}")


def _without_composites(fgraph: FunctionGraph) -> list[Variable]:
    """The outputs of the graph with kernels replaced by one or more Elemwise per scalar op."""
    new: dict[Variable, Variable] = {}
    for node in fgraph.toposort():
        inputs = [new.get(inp, inp) for inp in node.inputs]
        if isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Composite):
            outputs = _inlined(node.op.scalar_op, inputs)
        elif isinstance(node.op, Elemwise):
            outputs = _elemwise(node.op.scalar_op, inputs)
        else:
            outputs = node.clone_with_new_inputs(inputs, strict=False).outputs
        new.update(zip(node.outputs, outputs, strict=True))
    return [new.get(out, out) for out in fgraph.outputs]


def _inlined(composite: Composite, inputs: Sequence[Variable]) -> list[Variable]:
    new = dict(zip(composite.fgraph.inputs, inputs, strict=True))

    def lifted(variable: Variable) -> Variable:
        return pt.constant(variable.data) if isinstance(variable, Constant) else new[variable]

    for node in composite.fgraph.toposort():
        outputs = _elemwise(node.op, [lifted(inp) for inp in node.inputs])
        new.update(zip(node.outputs, outputs, strict=True))
    return [lifted(out) for out in composite.fgraph.outputs]


def _elemwise(op: ScalarOp, inputs: Sequence[Variable]) -> list[Variable]:
    if isinstance(op, Add | Mul):
        return [reduce(Elemwise(op), inputs)]
    return Elemwise(op)(*inputs, return_list=True)


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return float("inf")
    finite = np.isfinite(a)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    scale = max(1.0, float(np.max(np.abs(b[finite]), initial=0.0)))
    return float(np.max(np.abs(a[finite] - b[finite]), initial=0.0)) / scale
