"""What is the same: ops, types and constants."""

from __future__ import annotations

import functools
import gc
import threading

import numpy as np
import pytensor.scalar.basic as ps
import pytensor.tensor as pt
import pytest
from hypothesis import given
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import wrap_py
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.graph.type import Type
from pytensor.link.c.type import EnumList, Generic
from pytensor.scalar.basic import Composite
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.type import TensorType
from pytensor.tensor.type_other import SliceType

from pytensor_fuse._identity import attributes, equality, names, terms
from pytensor_fuse._identity.reasons import why_without_digest
from pytensor_fuse._identity.table import table
from pytensor_fuse._identity.terms import constant_term, term
from pytensor_fuse._pytensor.graphs.comparison import compared
from support.classes import every_class, every_module
from support.encodings import nan, plain, values

# Ops and types ---------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [Op, Type])
def test_it_is_known_how_each_class_of_pytensor_compares(base):
    unknown = [
        kind
        for kind in every_class(base)
        if kind.__eq__ is not object.__eq__ and compared(kind) is None
    ]
    assert not unknown
    assert len(every_class(base)) > 20


@functools.cache
def every_object():
    found = {}
    for module in every_module():
        for value in vars(module).values():
            if isinstance(value, Op | Type) and not isinstance(value, type):
                found.setdefault(id(value), value)
    return list(found.values())


def test_the_ops_and_types_of_pytensor_are_told_apart_as_it_does():
    objects = every_object()
    assert len(objects) > 300
    for i, a in enumerate(objects):
        for b in objects[:i]:
            assert (term(a) == term(b)) == bool(a == b), f"{a} and {b}"


def test_ops_and_types_of_pytensor_have_digests_unless_they_are_only_themselves():
    without = [value for value in every_object() if term(value).digest is None]
    assert {type(value).__eq__ for value in without} <= {object.__eq__}
    assert len(without) < 5


class WithProps(Op):
    __props__ = ("prop",)

    def __init__(self, prop):
        self.prop = prop

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0]


class Itself(WithProps):
    __eq__ = object.__eq__
    __hash__ = object.__hash__


class OwnEquality(WithProps):
    def __eq__(self, other):
        return type(self) is type(other) and str(self.prop) == str(other.prop)

    def __hash__(self):
        return hash(str(self.prop))


class Unhashable(OwnEquality):
    __hash__ = None


@given(values, values)
def test_ops_with_props_are_equal_when_pytensor_says_so(a, b):
    equal = WithProps(plain(a)) == WithProps(plain(b))
    a, b = WithProps(a), WithProps(b)
    assert (term(a) == term(b)) == equal
    assert term(a).digest is not None
    assert (term(a).digest == term(b).digest) == equal


def test_an_axis_may_be_of_any_integer_type():
    ops = [WithProps((kind(0), kind(1))) for kind in (int, np.int64, np.int32, np.uint8)]
    assert len({term(op) for op in ops}) == 1


def test_an_op_without_equality_is_itself():
    a, b = Itself(1), Itself(1)
    assert term(a) == term(a) != term(b)
    assert term(a).digest is None
    assert "does not define equality" in why_without_digest(a)


def test_a_lambda_among_the_props_is_itself():
    def function():
        """Local."""

    a, b, c = WithProps((1, function)), WithProps((1, function)), WithProps((1, lambda: 0))
    assert term(a) == term(b) != term(c)
    assert term(a).digest is None
    assert "prop" in why_without_digest(a)
    assert "function" in why_without_digest(a)


def test_an_op_that_compares_itself_is_what_it_says_it_is():
    a, b, c = OwnEquality(1), OwnEquality("1"), OwnEquality(2)
    assert term(a) == term(b) != term(c)
    assert term(a).digest is None
    assert "OwnEquality" in why_without_digest(a)
    # One that is equal to a third keeps its term when the first is gone.
    kept = term(b)
    del a
    gc.collect()
    assert term(OwnEquality(1)) == kept


def test_an_op_that_cannot_be_hashed_is_itself():
    a, b = Unhashable(1), Unhashable(1)
    assert term(a) == term(a) != term(b)


def test_props_that_cannot_be_encoded_are_compared():
    class Strange:
        def __init__(self, value):
            self.value = value

        def __eq__(self, other):
            return self.value == other.value

        def __hash__(self):
            return hash(self.value)

    ops = [WithProps((Strange(value), other)) for value in (1, 1, 2) for other in (0.0, -0.0)]
    assert [term(op) == term(ops[0]) for op in ops] == [a == ops[0] for a in ops]
    assert "prop" in why_without_digest(ops[0])


def test_a_local_class_is_itself_but_its_ops_are_values():
    def define():
        class Local(WithProps):
            pass

        return Local

    kind, other = define(), define()
    assert term(kind(1)) == term(kind(1)) != term(other(1))
    assert term(kind(1)) != term(kind(2))
    assert "cannot be imported" in why_without_digest(kind(1))


def test_what_an_op_overwrites_counts_even_if_it_is_not_compared():
    plain, in_place = WithProps(1), WithProps(1)
    in_place.destroy_map = {0: [0]}
    assert plain == in_place
    assert term(plain) != term(in_place)


@wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])
def doubled(x):
    return 2 * x


def test_functions_as_ops():
    def local(x):
        return x

    a, b = (wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])(local) for _ in range(2))
    assert a == b
    assert term(a) == term(b) != term(doubled)
    # Its name is that of the op by now.
    assert term(doubled).digest is None


def test_composites_are_their_graphs():
    def composite(constant):
        x = ps.float64("x")
        return Composite([x], [x / constant])

    assert term(composite(2.0)) == term(composite(2.0)) != term(composite(3.0))
    plus = term(composite(0.0))
    # While one is alive, PyTensor makes the other of the same inner nodes, of either zero.
    gc.collect()
    minus = term(composite(-0.0))
    assert plus != minus
    assert plus.digest != minus.digest


def test_an_op_with_a_graph_is_its_graph_bit_for_bit():
    def inner(constant):
        x = pt.vector("x")
        return OpFromGraph([x], [x / constant])

    terms = []
    for constant in (0.0, -0.0, 0.0):
        terms.append(term(inner(constant)))
        gc.collect()
    assert terms[0] == terms[2] != terms[1]


def test_overrides_are_compared_as_pytensor_does():
    def inner(factor, name=None):
        x = pt.vector("x")
        return OpFromGraph([x], [pt.exp(x)], pullback=lambda i, o, g: [factor * g[0]], name=name)

    a, b, c = inner(2), inner(2, "name"), inner(3)
    assert a == b
    assert a != c
    assert term(a) == term(b) != term(c)
    assert "pullback_overrides" in why_without_digest(a)


def test_blockwise_and_elemwise_are_their_cores():
    core = pt.linalg.cholesky(pt.matrix("x")).owner.op
    core = getattr(core, "core_op", core)
    signature = "(m,m)->(m,m)"
    assert term(Blockwise(core, signature=signature)) == term(Blockwise(core, signature=signature))
    assert term(Elemwise(ps.exp)) != term(Elemwise(ps.sin))
    assert term(Elemwise(ps.exp)) != term(Elemwise(ps.exp, {0: 0}))
    assert term(DimShuffle(input_ndim=1, new_order=("x", 0))) == term(
        DimShuffle(input_ndim=1, new_order=["x", 0])
    )


def test_types_are_values():
    assert term(TensorType("float64", (None, 2))) == term(TensorType("float64", (None, 2)))
    shapes = [(), (None,), (1,), (2,), (None, None)]
    kinds = [TensorType(dtype, shape) for dtype in ("float64", "float32") for shape in shapes]
    assert len({term(kind) for kind in kinds}) == len(kinds)
    assert len({term(kind).digest for kind in kinds}) == len(kinds)
    assert term(SliceType()) == term(SliceType())
    assert term(EnumList("A", "B")) == term(EnumList("A", "B")) != term(EnumList("B", "A"))


# Constants --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b"),
    [(0.0, -0.0), (nan(1), nan(2)), (1.0, 2.0), ([1.0], 1.0), (1.0, np.float32(1))],
)
def test_constants_count_bit_for_bit(a, b):
    def make(value):
        data = np.asarray(value)
        return pt.TensorConstant(TensorType(data.dtype, data.shape), data)

    assert constant_term(make(a)) == constant_term(make(a)) != constant_term(make(b))
    assert constant_term(make(a)).digest != constant_term(make(b)).digest


def test_a_name_is_no_part_of_a_constant():
    assert constant_term(pt.constant(1.0, name="a")) == constant_term(pt.constant(1.0, name="b"))


def test_constants_that_are_objects():
    generic = Generic()
    mutable = object.__new__(type("Mutable", (), {}))
    a, b = (Constant(generic, mutable) for _ in range(2))
    assert constant_term(a) == constant_term(b)
    assert why_without_digest(a) is not None
    c, d = (Constant(generic, ValueError) for _ in range(2))
    assert constant_term(c) == constant_term(d)
    assert constant_term(c).digest is not None
    e, f = (Constant(generic, {"a": 0}) for _ in range(2))
    assert constant_term(e) == constant_term(e) != constant_term(f)


# Memory -----------------------------------------------------------------------------------------


def test_nothing_is_kept_of_what_is_gone():
    def use():
        shape = (None, 17)
        x = ps.float64("x")
        return [
            term(WithProps(("a", 5))),
            term(WithProps(lambda: 0)),
            term(Itself(3)),
            term(OwnEquality(4)),
            term(TensorType("float32", shape)),
            term(Elemwise(Composite([x], [x * 17.5]))),
            constant_term(pt.constant(np.arange(7.5))),
            constant_term(Constant(Generic(), object.__new__(type("Kind", (), {})))),
        ]

    use()
    # What other tests have left goes in steps: what is freed frees more.
    for _ in range(3):
        gc.collect()
    caches = (
        table,
        terms.remembered,
        names.objects,
        equality.equal_objects,
        attributes.compared_classes,
    )
    before = [len(cache) for cache in caches]
    for _ in range(20):
        use()
    gc.collect()
    after = [len(cache) for cache in caches]
    assert after == before
    table.check()


def test_threads_agree():
    ops = [make(prop) for prop in range(40) for make in (Itself, OwnEquality, WithProps)]
    ops += [WithProps(lambda: 0) for _ in range(40)]
    seen = []
    barrier = threading.Barrier(4)

    def work():
        barrier.wait()
        seen.append([term(op) for op in ops])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4
    assert all(terms == seen[0] for terms in seen)
