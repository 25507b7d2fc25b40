"""Kernels are built once per structure, and forgotten before there are too many."""

import threading

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse import enabled, plan_fusion
from pytensor_fuse._fusion.kernels import KernelCache, kernel_cache
from pytensor_fuse._identity.terms import intern_graph
from pytensor_fuse._pytensor.graphs.composites import build_kernel
from pytensor_fuse._pytensor.ops.scalar_kinds import scalar_kinds
from pytensor_fuse.graph import HashConsTable


def chain(length):
    x = pt.vector("x")
    out = x
    for _ in range(length):
        out = pt.exp(out)
    return FunctionGraph([x], [out])


def kernel(length):
    """A kernel of that many scalar nodes."""
    (kind,) = scalar_kinds([pt.exp(pt.vector("x")).owner])
    steps = [(kind, [(i > 0, max(i - 1, 0))]) for i in range(length)]
    return build_kernel(["float64"], steps, [length - 1])


def test_a_kernel_is_what_pytensor_would_build():
    x, y = (pytensor.scalar.float64() for _ in range(2))
    total = pytensor.scalar.add(pytensor.scalar.exp(x), y)
    expected = Composite([x, y], [total, pytensor.scalar.mul(total, total)])
    a, b = pt.vectors("a", "b")
    out = pt.exp(a) + b
    fgraph = FunctionGraph([a, b], [out, out * out])
    plan_fusion(fgraph).apply()
    (node,) = fgraph.apply_nodes
    assert isinstance(node.op, Elemwise)
    assert node.op.scalar_op == expected
    assert hash(node.op.scalar_op) == hash(expected)
    assert str(node.op.scalar_op) == str(expected)
    assert node.op.scalar_op.__getstate__().keys() == expected.__getstate__().keys()


def test_equal_scalar_nodes_are_one():
    x = pt.vector("x")
    # Built twice, and not merged.
    fgraph = FunctionGraph([x], [pt.exp(x) + x, pt.exp(x) * x])
    plan_fusion(fgraph).apply()
    (node,) = fgraph.apply_nodes
    assert len(node.op.scalar_op.fgraph.apply_nodes) == 3


def test_a_kernel_is_the_term_of_its_scalar_graph():
    fgraph = chain(3)
    plan_fusion(fgraph).apply()
    (node,) = fgraph.apply_nodes
    inner = node.op.scalar_op.fgraph
    # It is there already: the kernel's term, which the cache holds.
    structure = intern_graph(inner.inputs, inner.outputs).root
    assert kernel_cache.get(structure) is node.op
    x = pytensor.scalar.float64()
    built = pytensor.scalar.exp(pytensor.scalar.exp(pytensor.scalar.exp(x)))
    assert intern_graph([x], [built]).root == structure
    assert structure.digest is not None


def test_equal_kernels_are_one_object_in_a_graph_and_in_several():
    x, y = pt.vector("x"), pt.matrix("y")
    outputs = [pt.exp(pt.sin(x)).sum(), pt.exp(pt.sin(y)).sum()]
    ops = []
    for output in ([outputs[0]], [outputs[1]], outputs):
        fgraph = FunctionGraph([x, y], output, clone=True)
        plan_fusion(fgraph).apply()
        ops += [node.op for node in fgraph.toposort() if isinstance(node.op, Elemwise)]
    assert len(ops) == 4
    assert len({id(op) for op in ops}) == 1


def test_kernels_whose_constants_differ_in_a_bit_are_two():
    x = pt.vector("x")
    a = pytensor.scalar.float64()
    # Interned by PyTensor as one, unless the package is on.
    with enabled():
        kernels = [
            Composite([a], [pytensor.scalar.arctan2(a, pytensor.scalar.constant(zero))])
            for zero in (0.0, -0.0)
        ]
    ops = []
    for scalar_op in kernels:
        fgraph = FunctionGraph([x], [pt.exp(Elemwise(scalar_op)(x))], clone=False)
        plan_fusion(fgraph).apply()
        ops += [node.op for node in fgraph.apply_nodes]
    assert len({id(op) for op in ops}) == 2


def test_the_least_recently_used_kernel_goes_first():
    cache = KernelCache(max_scalar_nodes=5)
    a, b, c = (HashConsTable().opaque() for _ in range(3))
    op, _ = cache.add(a, kernel(2)), cache.add(b, kernel(2))
    assert cache.get(a) is op
    cache.add(c, kernel(2))
    assert cache.get(a) is op
    assert cache.get(b) is None
    assert cache.get(c) is not None


def test_a_kernel_larger_than_the_cache_is_kept_until_the_next():
    cache = KernelCache(max_scalar_nodes=3)
    structure, another = (HashConsTable().opaque() for _ in range(2))
    large = cache.add(structure, kernel(5))
    assert cache.get(structure) is large
    cache.add(another, kernel(1))
    assert cache.get(structure) is None


def test_the_first_thread_to_add_a_kernel_wins():
    cache = KernelCache()
    structure = HashConsTable().opaque()
    barrier = threading.Barrier(8)
    seen = []

    def add():
        op = kernel(3)
        barrier.wait()
        seen.append(cache.add(structure, op))

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(op) for op in seen}) == 1


@pytest.mark.parametrize("ignore", ["", "pytensor_fuse"])
def test_replacements_are_printed_where_pytensor_is_to_print_them(ignore, capsys):
    fgraph = chain(3)
    flags = {"optimizer_verbose": True, "optimizer_verbose_ignore": ignore}
    with pytensor.config.change_flags(**flags):
        plan_fusion(fgraph).apply()
    printed = capsys.readouterr().out
    assert ("rewriting: pytensor_fuse replaces" in printed) == (not ignore)
