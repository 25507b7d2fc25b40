"""Kernels are built once per structure, and forgotten before there are too many."""

import threading

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse import plan_fusion
from pytensor_fuse._kernels import KernelCache, build_kernel
from pytensor_fuse._targets import scalar_kinds


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


def test_the_least_recently_used_kernel_goes_first():
    cache = KernelCache(max_scalar_nodes=5)
    ops = {key: cache.add(key, kernel(2)) for key in (b"a", b"b")}
    assert cache.get(b"a") is ops[b"a"]
    cache.add(b"c", kernel(2))
    assert cache.get(b"a") is ops[b"a"]
    assert cache.get(b"b") is None
    assert cache.get(b"c") is not None


def test_a_kernel_larger_than_the_cache_is_kept_until_the_next():
    cache = KernelCache(max_scalar_nodes=3)
    large = cache.add(b"large", kernel(5))
    assert cache.get(b"large") is large
    cache.add(b"small", kernel(1))
    assert cache.get(b"large") is None


def test_the_first_thread_to_add_a_kernel_wins():
    cache = KernelCache()
    barrier = threading.Barrier(8)
    seen = []

    def add():
        op = kernel(3)
        barrier.wait()
        seen.append(cache.add(b"key", op))

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
