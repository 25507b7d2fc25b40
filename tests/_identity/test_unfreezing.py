"""Frozen graphs compute what the graph computed."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Constant
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import ancestors
from pytensor.link.basic import PerformLinker
from pytensor.scan.op import Scan

import pytensor_fuse
from pytensor_fuse import freeze
from support.frozen import radon_like
from support.random_graphs.building import build
from support.random_graphs.strategies import any_programs


def evaluate(fgraph, values, linker=None):
    """The outputs, by the ops' Python code unless there is a linker."""
    run, inputs, outputs = (linker or PerformLinker()).accept(fgraph).make_thunk()
    for container, value in zip(inputs, values, strict=True):
        container.storage[0] = copy.deepcopy(value)
    run()
    return [container.storage[0] for container in outputs]


def assert_same_values(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


# Values -----------------------------------------------------------------------------------------


@given(any_programs(widen=False))
def test_thawed_graphs_compute_the_same(program):
    case = build(program)
    frozen = freeze(case.fgraph)
    thawed = frozen.unfreeze()
    thawed.check_integrity()
    assert freeze(thawed) == frozen
    assert len(thawed.apply_nodes) == len(frozen)
    expected = evaluate(case.fgraph, case.values)
    assert_same_values(evaluate(thawed, case.values), expected)
    bound = FunctionGraph(case.fgraph.inputs, frozen.bind(case.fgraph.inputs), clone=False)
    assert freeze(bound) == frozen
    assert_same_values(evaluate(bound, case.values), expected)


@given(any_programs())
def test_the_views_are_the_graph(program):
    fgraph = build(program).fgraph
    frozen = freeze(fgraph)
    assert [v.type for v in frozen.inputs] == [v.type for v in fgraph.inputs]
    assert [v.type for v in frozen.outputs] == [v.type for v in fgraph.outputs]
    known = set(frozen.inputs)
    assert len(frozen.toposort()) == len(frozen)
    for node in frozen.toposort():
        assert all(v in known or v.constant is not None for v in node.inputs)
        known.update(node.outputs)
    assert all(v in known or v.constant is not None for v in frozen.outputs)
    expected = sorted(str(node.op) for node in frozen.unfreeze().toposort())
    assert sorted(str(node.op) for node in frozen.toposort()) == expected


@pytest.mark.parametrize("linker", ["py", "cvm"])
def test_compiled_graphs_compute_the_same(linker):
    inputs, outputs, values = radon_like()
    mode = Mode(linker, "fast_run")
    f = pytensor.function(inputs, outputs, mode=mode)
    frozen = freeze(f.maker.fgraph)
    assert any(node.op.destroy_map for node in frozen.toposort())
    assert_same_values(evaluate(frozen.unfreeze(), values, mode.linker), f(*values))
    assert freeze(frozen.unfreeze()) == frozen
    assert pickle.loads(pickle.dumps(frozen)) == frozen


@pytest.mark.parametrize("linker", ["py", "cvm"])
def test_graphs_with_updates_compute_the_same(linker):
    x = pt.vector("x")
    total = pytensor.shared(np.arange(3.0), name="total")
    mode = Mode(linker, "fast_run")
    f = pytensor.function([x], [pt.exp(x).sum() + total], updates=[(total, total + x)], mode=mode)
    frozen = freeze(f.maker.fgraph)
    value = np.array([1.0, 2.0, 3.0])
    before = [value if v.name == "x" else total.get_value() for v in f.maker.fgraph.inputs]
    answer, updated = evaluate(frozen.unfreeze(), before, mode.linker)
    assert_same_values([answer], f(value))
    assert_same_values([updated], [total.get_value()])


# In-place graphs --------------------------------------------------------------------------------


def equal_buffers(n):
    """Adds to ``n`` buffers of the same value, in place, and returns all of them."""
    x = pt.vector("x")
    buffers = [pt.exp(x) for _ in range(n)]
    return x, [pt.inc_subtensor(buffer[0], i, inplace=True) for i, buffer in enumerate(buffers)]


def test_equal_buffers_of_an_in_place_graph_are_kept_apart():
    x, outputs = equal_buffers(3)
    fgraph = FunctionGraph([x], outputs, clone=False)
    frozen = freeze(fgraph)
    assert len(frozen) == len(fgraph.apply_nodes) == 6
    y, again = equal_buffers(3)
    assert freeze([y], again) == frozen
    value = np.zeros(2)
    expected = [[1.0 + i, 1.0] for i in range(3)]
    assert_same_values(evaluate(frozen.unfreeze(), [value]), np.array(expected))

    z = pt.vector("z")
    buffer = pt.exp(z)
    aliased = [pt.inc_subtensor(buffer[0], i, inplace=True) for i in range(3)]
    assert freeze([z], aliased) != frozen


def test_a_buffer_is_read_before_it_is_overwritten():
    x = pt.vector("x")
    buffer = pt.exp(x)
    overwritten = pt.inc_subtensor(buffer[0], 9.0, inplace=True)
    # Depth first, the destroyer comes before the reader or after it: both are tried.
    for order in (1, -1):
        outputs = [overwritten, pt.sin(buffer)][::order]
        frozen = freeze([x], outputs)
        ops = [node.op for node in frozen.toposort()]
        assert ops.index(overwritten.owner.op) == 2
        thawed = frozen.unfreeze()
        assert any(isinstance(feature, DestroyHandler) for feature in thawed._features)
        value = np.zeros(2)
        expected = [np.array([10.0, 1.0]), np.sin(np.ones(2))][::order]
        assert_same_values(evaluate(thawed, [value]), expected)


def test_equal_nodes_of_another_graph_are_one():
    x = pt.vector("x")
    frozen = freeze([x], [pt.exp(x) + pt.exp(x)])
    assert len(frozen) == 2
    y = pt.exp(x)
    assert frozen == freeze([x], [y + y])


# Zeros and NaNs ---------------------------------------------------------------------------------


def test_zeros_of_either_sign_stay_what_they_are():
    x = pt.vector("x")
    frozen = freeze([x], [x / 0.0, x / -0.0])
    assert len(frozen.toposort()) == len(freeze([x], [x / 0.0, x / 0.0]).toposort()) * 2
    value = np.array([1.0])
    assert_same_values(
        evaluate(frozen.unfreeze(), [value]), [value / 0.5 * np.inf, value * -np.inf]
    )
    assert freeze([x], [x / 0.0]).digest != freeze([x], [x / -0.0]).digest


def test_payloads_of_nans_stay_what_they_are():
    x = pt.vector("x")
    bits = [np.array([0x7FF8000000000000 | payload]).view("float64") for payload in (1, 2, 2)]
    a, b, c = (freeze([x], [x * pt.constant(value)]) for value in bits)
    assert a != b == c
    (constant,) = (v.constant for v in b.toposort()[-1].inputs if v.constant is not None)
    assert constant.data.tobytes() == bits[1].tobytes()


# Scans and random numbers -----------------------------------------------------------------------


def test_scan_and_random_variables():
    def model(constant, seed_name="rng"):
        v = pt.vector("v")
        rng = pytensor.shared(np.random.default_rng(0), name=seed_name)
        steps = pytensor.scan(
            lambda s, acc: s * acc + constant,
            sequences=[v],
            outputs_info=[pt.constant(np.float64(0.0))],
            return_updates=False,
        )
        draw = pt.random.normal(steps, 1.0, rng=rng, return_next_rng=True)
        return [v, rng], list(draw)

    frozen = freeze(*model(1.0))
    assert frozen == freeze(*model(1.0, "other"))
    assert frozen != freeze(*model(2.0))
    assert frozen.digest == freeze(*model(1.0)).digest

    def inner_zero(outputs):
        (scan,) = {
            v.owner.op for v in ancestors(outputs) if v.owner and isinstance(v.owner.op, Scan)
        }
        nodes = scan.fgraph.apply_nodes
        (zero,) = {v for node in nodes for v in node.inputs if isinstance(v, Constant)}
        return zero.data.tobytes()

    # Without the package PyTensor may make the inner graph of the one of the other's nodes.
    with pytensor_fuse.enabled():
        kept = [model(zero) for zero in (0.0, -0.0)]
    assert inner_zero(kept[0][1]) != inner_zero(kept[1][1])
    assert freeze(*kept[0]).digest != freeze(*kept[1]).digest
    read = pickle.loads(pickle.dumps(frozen))
    assert read == frozen
    inputs, outputs = model(1.0)
    values = [np.arange(3.0), np.random.default_rng(1)]
    expected = evaluate(FunctionGraph(inputs, outputs, clone=False), values)
    ours = evaluate(frozen.unfreeze(), values)
    np.testing.assert_array_equal(ours[1], expected[1])
