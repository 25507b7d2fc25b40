"""Merging through kernels: what hangs below equal outputs of different kernels becomes one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import permutations

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import MergeOptimizer
from pytensor.graph.traversal import ancestors
from pytensor.graph.utils import InconsistencyError
from pytensor.scalar.basic import Composite
from pytensor.tensor.blas import _dot22, gemm_no_inplace, gemv_no_inplace
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.linalg import SLogDet
from pytensor.tensor.rewriting.elemwise import FusionOptimizer

import pytensor_fuse
from pytensor_fuse._activation.passes.fusion import FusionRewriter
from pytensor_fuse._activation.passes.merging import MergeRewriter
from support.graphs import assert_same_results, evaluate, expensive, tolerance_of
from support.random_graphs.building import Program, build, build_fused_and_not
from support.random_graphs.strategies import any_programs, plain_programs


def two_covariances() -> FunctionGraph:
    """Twice the same covariance, each computed beside something else."""
    x, noise = pt.matrix("x"), pt.scalar("noise")
    outputs: list[Variable] = []
    for other in (pt.sin, pt.cos):
        covariance = pt.exp(-(x**2)) * noise
        outputs += [pt.linalg.cholesky(covariance + pt.eye(3)).sum(), (other(covariance) * x).sum()]
    return FunctionGraph([x, noise], outputs, clone=True)


def merge(fgraph: FunctionGraph) -> None:
    with pytensor_fuse.enabled():
        MergeRewriter().rewrite(fgraph)


def test_stock_hides_equal_expressions_in_two_kernels_and_ours_finds_them():
    values = [np.array([[2.0, 0.1, 0.2], [0.1, 3.0, 0.3], [0.2, 0.3, 4.0]]) / 5, np.array(0.5)]
    fgraph, stock = two_covariances(), two_covariances()
    expected = evaluate(fgraph, values)
    with pytensor_fuse.enabled(False):
        for graph in (stock, fgraph):
            FusionOptimizer().rewrite(graph)
        assert expensive(stock) == {"Cholesky": 2}
        MergeOptimizer().rewrite(stock)
        assert expensive(stock) == {"Cholesky": 2}
    merge(fgraph)
    assert expensive(fgraph) == {"Cholesky": 1}
    assert_same_results(evaluate(fgraph, values), expected)
    fgraph.check_integrity()
    # The second kernel does not compute what nothing reads any more.
    for node in fgraph.apply_nodes:
        assert all(fgraph.clients[output] for output in node.outputs)


# Each reads a square matrix.
COSTLY: dict[str, Callable[[Variable], Variable]] = {
    "Cholesky": pt.linalg.cholesky,
    "MatrixInverse": pt.linalg.inv,
    "Det": pt.linalg.det,
    "SLogDet": lambda matrix: SLogDet()(matrix)[1],
    "Solve": lambda matrix: pt.linalg.solve(matrix, pt.ones((3, 1)), b_ndim=2),
    "SolveTriangular": lambda m: pt.linalg.solve_triangular(m, pt.ones((3, 1)), b_ndim=2),
    "Dot": lambda matrix: pt.dot(matrix, matrix),
    "Dot22": lambda matrix: _dot22(matrix, matrix),
    "Gemm": lambda matrix: gemm_no_inplace(matrix, HALF, matrix, matrix, HALF),
    "Gemv": lambda matrix: gemv_no_inplace(matrix[0], HALF, matrix, matrix[1], HALF),
    "Scan": lambda matrix: pytensor.scan(pt.sum, sequences=[matrix], return_updates=False),
    "Blockwise Cholesky": lambda matrix: pt.linalg.cholesky(pt.stack([matrix, matrix])),
    "Blockwise Dot": lambda matrix: pt.stack([matrix, matrix]) @ matrix,
}
HALF = pt.constant(np.float64(0.5))


@pytest.mark.parametrize("name", COSTLY)
def test_what_hangs_below_equal_outputs_is_one_node(name: str) -> None:
    x, noise = pt.matrix("x"), pt.scalar("noise")
    a, b = ps.float64("a"), ps.float64("b")
    product = ps.exp(a) * b
    results = []
    for other in (ps.sin(product), ps.cos(a)):
        matrix, beside = Elemwise(Composite([a, b], [product, other]))(
            x, noise.dimshuffle("x", "x")
        )
        results += [COSTLY[name](matrix).sum(), beside.sum()]
    fgraph = FunctionGraph([x, noise], results, clone=True)

    assert expensive(fgraph) == {name: 2}
    merge(fgraph)
    assert expensive(fgraph) == {name: 1}


def test_fusion_merges_first_where_the_mode_merges():
    fgraph = two_covariances()
    MergeRewriter().add_requirements(fgraph)
    FusionRewriter().apply(fgraph)
    assert expensive(fgraph) == {"Cholesky": 1}


def test_a_mode_without_merging_is_left_without():
    fgraph = two_covariances()
    FusionRewriter().apply(fgraph)
    assert expensive(fgraph) == {"Cholesky": 2}


def in_two_ways(x: Variable) -> list[Variable]:
    a = ps.float64("a")
    return [Elemwise(Composite([a], [ps.sin(ps.cos(a))]))(x), pt.sin(pt.cos(x))]


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_what_merging_outputs_makes_equal_is_compared_again(order: tuple[int, ...]) -> None:
    x = pt.vector("x")
    outputs = [out for v in in_two_ways(x) for out in in_two_ways(v[::-1])]
    fgraph = FunctionGraph([x], [outputs[i] for i in order], clone=True)
    merge(fgraph)
    assert len(set(fgraph.outputs)) == 1


@pytest.mark.parametrize("which", [0, 1])
def test_what_becomes_equal_between_two_passes_is_compared(which: int) -> None:
    x, y = pt.vectors("x", "y")
    between = [pt.exp(x), pt.exp(y)]
    outputs = [in_two_ways(between[0])[0], in_two_ways(between[1])[1]]
    fgraph = FunctionGraph([x, y], outputs, clone=False)
    merge(fgraph)
    assert len(set(fgraph.outputs)) == 2
    fgraph.replace(between[which], between[1 - which])
    merge(fgraph)
    assert len(set(fgraph.outputs)) == 1


class _Refuse(Feature):
    def __init__(self) -> None:
        self.n_asked = 0

    def on_validate(self, fgraph: FunctionGraph) -> None:
        self.n_asked += 1
        raise InconsistencyError("no")


def test_a_refusal_is_remembered_and_leaves_the_nodes_as_they_were():
    fgraph = two_covariances()
    with pytensor_fuse.enabled(False):
        FusionOptimizer().rewrite(fgraph)
    refuse = _Refuse()
    nodes = {node: node.op for node in fgraph.apply_nodes}
    fgraph.attach_feature(refuse)
    merge(fgraph)
    # Constants are merged without asking.
    assert {node: node.op for node in fgraph.apply_nodes} == nodes
    fgraph.check_integrity()
    assert all(fgraph.clients[output] for node in nodes for output in node.outputs)
    assert 0 < refuse.n_asked < 20


@pytest.mark.parametrize("n_others", [0, 50])
def test_kernels_that_a_change_elsewhere_makes_equal(n_others: int) -> None:
    x, y, other = pt.dmatrices("x", "y", "other")
    scalar = ps.float64("a")
    one = Elemwise(ps.Composite([scalar], [ps.sin(ps.cos(scalar))]))(x)
    cosine = pt.cos(y)
    two = Elemwise(ps.Composite([scalar], [ps.sin(scalar)]))(cosine)
    for i in range(n_others):
        other = other[::-1] + float(i)
    outputs = [pt.linalg.cholesky(one), pt.linalg.cholesky(two), other]
    fgraph = FunctionGraph(None, outputs, clone=False)
    merge(fgraph)
    fgraph.change_node_input(cosine.owner, 0, x)
    merge(fgraph)
    assert expensive(fgraph) == {"Cholesky": 1}


class _Raise(Feature):
    def __init__(self, when: int) -> None:
        self.left = when

    def on_change_input(self, *event: object, reason: object = None) -> None:
        self.left -= not str(reason).startswith("revert")
        if self.left == 0:
            self.left = -1
            raise ValueError("raised by a feature")


@pytest.mark.parametrize("when", range(1, 15))
def test_what_a_feature_broke_off_is_compared_by_the_next_pass(when: int) -> None:
    fgraph = two_covariances()
    with pytensor_fuse.enabled(False):
        FusionOptimizer().rewrite(fgraph)
    MergeRewriter().add_requirements(fgraph)
    raising = _Raise(when)
    fgraph.attach_feature(raising)
    with suppress(ValueError):
        MergeRewriter().apply(fgraph)
    fgraph.remove_feature(raising)
    MergeRewriter().apply(fgraph)
    assert expensive(fgraph) == {"Cholesky": 1}


@given(plain_programs(), st.integers(2, 6))
def test_a_graph_and_its_fused_copy_become_one(program: Program, max_operands: int) -> None:
    case = build_fused_and_not(program, max_operands)
    both = case.fgraph
    expected = evaluate(both, case.values)
    tolerance = tolerance_of(both)
    merge(both)
    both.check_integrity()
    n = len(both.outputs) // 2
    assert both.outputs[:n] == both.outputs[n:]
    assert_same_results(evaluate(both, case.values), expected, tolerance)


@given(any_programs(), st.integers(2, 6))
def test_merging_kernels_keeps_results(program: Program, max_operands: int) -> None:
    case = build_fused_and_not(program, max_operands)
    both = case.fgraph
    expected = evaluate(both, case.values)
    tolerance = tolerance_of(both)
    n_dots = expensive(both)
    merge(both)
    both.check_integrity()
    assert expensive(both) <= n_dots
    assert_same_results(evaluate(both, case.values), expected, tolerance)


@given(any_programs())
def test_fusion_makes_no_more_expensive_nodes(program: Program) -> None:
    merged, fused = build(program).fgraph, build(program).fgraph
    merge(merged)
    MergeRewriter().add_requirements(fused)
    FusionRewriter().apply(fused)
    merge(fused)
    assert expensive(fused) <= expensive(merged)


def apply_fusion(fgraph: FunctionGraph) -> None:
    """Fuse as in a compile: merged before, and after."""
    MergeRewriter().add_requirements(fgraph)
    FusionRewriter().apply(fgraph)
    merge(fgraph)


Steps = list[tuple[int, int, int]]


def steps_of_matrices() -> st.SearchStrategy[Steps]:
    return st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), st.integers(0, 9)), max_size=14)


def matrices(kind: str, x: Variable, steps: Steps) -> list[Variable]:
    """What a chain of steps computes from a matrix, with expensive nodes of one kind within."""
    pool = [x]
    for step, a, b in steps:
        p, q = pool[-1 - a % len(pool)], pool[-1 - b % len(pool)]
        if step == 6:
            costly = COSTLY[kind](p)
            pool.append(p * (costly if costly.type.ndim == 0 else costly.sum()))
        else:
            pool.append((pt.sin(p), p + q, pt.exp(p), p * q, p - q, p[::-1])[step])
    read = {v for out in pool for v in ancestors([out]) if v is not out}
    return [v for v in pool if v not in read]


@pytest.mark.parametrize("kind", COSTLY)
@given(steps=steps_of_matrices(), max_operands=st.integers(2, 6))
@example(steps=[(0, 0, 0), (0, 0, 0), (6, 0, 0)], max_operands=2)
def test_fusion_makes_no_more_nodes_of_any_expensive_kind(
    kind: str, steps: Steps, max_operands: int
) -> None:
    x = pt.matrix("x")
    merged, fused = (FunctionGraph([x], matrices(kind, x, steps), clone=True) for _ in range(2))
    merge(merged)
    apply_fusion(fused)
    assert expensive(fused) <= expensive(merged)
    # Half of a graph fused in another way, the equals are in kernels that begin and end elsewhere.
    half = FunctionGraph([x], matrices(kind, x, steps), clone=False)
    pytensor_fuse.plan_fusion(half, max_operands=max_operands).apply()
    both = FunctionGraph([x], [*half.outputs, *matrices(kind, x, steps)], clone=True)
    apply_fusion(both)
    both.check_integrity()
    assert expensive(both) <= expensive(merged)


@pytest.mark.parametrize("kind", COSTLY)
def test_compiling_makes_no_more_nodes_of_any_expensive_kind(kind: str) -> None:
    x = pt.matrix("x")
    outputs: list[Variable] = []
    for other in (pt.sin, pt.cos):
        matrix = pt.exp(-(x**2)) + pt.eye(3)
        outputs += [COSTLY[kind](matrix).sum(), (other(matrix) * x).sum()]
    stock, ours = compiled([x], outputs, Mode("py", "fast_run"))
    value = np.array([[2.0, 0.1, 0.2], [0.1, 3.0, 0.3], [0.2, 0.3, 4.0]]) / 5
    assert_same_results(ours(value), stock(value))
    assert sum(expensive(ours.maker.fgraph).values()) == 1
    assert expensive(ours.maker.fgraph) <= expensive(stock.maker.fgraph)


def compiled(inputs: list[Variable], outputs: list[Variable], mode: Mode) -> list[Callable]:
    functions = []
    for on in (False, True):
        with pytensor_fuse.enabled(on):
            functions.append(pytensor.function(inputs, outputs, mode=mode))
    return functions


@pytest.mark.parametrize("mode", [Mode("py", "fast_run"), Mode("cvm", "fast_run")])
def test_what_is_left_of_a_kernel_keeps_its_shape(mode: Mode) -> None:
    row, matrix = pt.row("row"), pt.matrix("matrix")
    a, b = ps.float64("a"), ps.float64("b")
    wide, product = Elemwise(Composite([a, b], [ps.exp(a), a * b]))(row, matrix)
    values = np.ones((1, 2)), np.arange(6.0).reshape(3, 2)
    stock, ours = compiled([row, matrix], [wide, product + 1, row * matrix], mode)
    assert_same_results(ours(*values), stock(*values))
    assert ours(*values)[0].shape == (3, 2)


def test_what_is_left_of_a_kernel_may_read_nothing() -> None:
    x = pt.vector("x")
    a = ps.float64("a")
    one = ps.constant(np.float64(1.0))
    constant, exp = Elemwise(Composite([a], [ps.exp(one), ps.exp(a)]))(x)
    stock, ours = compiled([x], [constant, exp + 1, pt.exp(x)], Mode("py", "fast_run"))
    assert_same_results(ours(np.zeros(3)), stock(np.zeros(3)))


@given(st.data())
def test_kernels_of_any_operands_keep_results(data: st.DataObject) -> None:
    """Kernels made by hand, whose outputs read some of their inputs, of several shapes."""
    inputs = [pt.row("row"), pt.matrix("matrix"), pt.col("col"), pt.matrix("other")]
    values = [
        np.array([[0.3, 0.6]]),
        np.arange(6.0).reshape(3, 2) / 7,
        np.array([[0.1], [0.2], [0.4]]),
    ]
    values.append(values[1] + 1)
    pool: list[Variable] = list(inputs)
    scalars = [ps.float64(name) for name in "abc"]
    for _ in range(data.draw(st.integers(2, 5))):
        operands = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3))
        read = scalars[: len(operands)]
        pieces = [
            ps.sin(read[0]),
            ps.cos(read[-1]),
            ps.sin(read[0]) + read[-1],
            ps.exp(ps.constant(np.float64(0.5))),
        ]
        outputs = data.draw(st.lists(st.sampled_from(pieces), min_size=1, max_size=3))
        kernel = Elemwise(Composite(read, outputs))
        pool += kernel(*operands, return_list=True)
    wanted = data.draw(st.lists(st.sampled_from(pool[4:]), min_size=1, max_size=4))
    fgraph = FunctionGraph(inputs, wanted, clone=True)
    expected = evaluate(fgraph, values)
    merge(fgraph)
    fgraph.check_integrity()
    assert_same_results(evaluate(fgraph, values), expected)
