"""Frozen graphs as objects: immutable, shown short, of no cycle, shared by threads."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import tracemalloc
import weakref

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.type import TensorType

from pytensor_fuse import freeze
from pytensor_fuse._identity import equality, names, terms
from pytensor_fuse._identity.frozen import same_graph
from pytensor_fuse._identity.table import table
from pytensor_fuse.exceptions import FreezeError
from pytensor_fuse.reports import FrozenGraph
from support.effort import IS_DEEP
from support.frozen import Itself, Other, applied, radon_like

# Objects ----------------------------------------------------------------------------------------


def exp_of_x():
    x = pt.vector("x")
    return freeze([x], [pt.exp(x) + 1])


@pytest.mark.parametrize("length", [-1, 2**63, 2**70])
def test_static_lengths_that_no_array_has(length):
    """PyTensor takes any integer, and none of them is a length that is not known."""
    x, y, z = TensorType("float64", (length,))("x"), pt.vector("y"), pt.vector("z")
    assert freeze([x, y], [x]) != freeze([x, x.clone()], [x])
    assert freeze([y, x], [y]) != freeze([y, z], [y])


def test_names_and_tags_are_not_structure():
    x = pt.vector("x")
    constant = pt.constant(2.0, name="two")
    out = pt.exp(x) * constant
    out.name, out.tag.note = "out", "note"
    frozen = freeze([x], [out])
    assert frozen == freeze([x], [pt.exp(x) * pt.constant(2.0)])
    thawed = frozen.unfreeze()
    assert [variable.name for variable in thawed.variables] == [None] * len(thawed.variables)
    assert constant.name == "two"
    assert not any(hasattr(variable.tag, "note") for variable in thawed.variables)


def test_what_is_given_is_left_alone():
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [pt.exp(x) + pt.exp(x)], clone=False)
    before = fgraph.toposort(), list(fgraph.outputs), list(fgraph._features)
    frozen = freeze(fgraph)
    frozen.unfreeze()
    assert (fgraph.toposort(), list(fgraph.outputs), list(fgraph._features)) == before
    fgraph.replace(fgraph.outputs[0], x)
    assert frozen == freeze([x], [pt.exp(x) + pt.exp(x)])


def test_is_immutable():
    frozen = exp_of_x()
    with pytest.raises(AttributeError):
        frozen.inputs = ()
    with pytest.raises(AttributeError):
        frozen.anything = 1
    with pytest.raises(TypeError, match="freeze"):
        FrozenGraph()
    public = {name for name in dir(frozen) if not name.startswith("_")}
    assert public == {"bind", "digest", "inputs", "outputs", "toposort", "unfreeze"}


def test_copies_are_the_graph_itself():
    frozen = exp_of_x()
    assert copy.copy(frozen) is frozen
    assert copy.deepcopy([frozen])[0] is frozen
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        read = pickle.loads(pickle.dumps(frozen, protocol))
        assert read == frozen
        assert read.digest == frozen.digest
        assert repr(read) == repr(frozen)


def test_is_not_equal_to_something_else():
    frozen = exp_of_x()
    assert frozen != 1
    assert frozen != frozen.unfreeze()


def test_a_graph_is_shown_short():
    assert repr(exp_of_x()).count("\n") == 3
    x = out = pt.vector("x")
    for _ in range(50):
        out = pt.exp(out)
    text = repr(freeze([x], [out]))
    assert "50 nodes" in text
    assert len(text) < 200


def test_a_long_chain_needs_no_recursion():
    x = out = pt.vector("x")
    for i in range(20_000):
        out = pt.exp(out) if i % 2 else pt.sin(out)
    frozen = freeze([x], [out])
    assert len(frozen) == 20_000
    assert pickle.loads(pickle.dumps(frozen)) == frozen
    assert freeze(frozen.unfreeze()) == frozen
    assert len(frozen.toposort()) == 20_000
    reference = weakref.ref(frozen)
    del frozen
    assert reference() is None


def test_inputs_that_are_computed_or_constant_are_inputs():
    x = pt.vector("x")
    y = pt.exp(x)
    assert freeze([y], [y + 1]) == freeze([x], [x + 1])
    constant = pt.constant(np.array([1.0, 2.0]))
    z = TensorType("float64", (2,))("z")
    assert freeze([constant], [pt.exp(constant)]) == freeze([z], [pt.exp(z)])


def test_unused_and_returned_inputs():
    x, y = pt.vectors("xy")
    assert freeze([x, y], [x]) != freeze([x], [x])
    assert freeze([x, y], [x]) != freeze([x, y], [y])
    assert freeze([x], []) == freeze([y], [])
    assert len(freeze([], [pt.constant(1.0)])) == 0
    assert freeze([x, y], [y, x, x]).outputs[0].number == 1


# Errors -----------------------------------------------------------------------------------------


def test_all_orphans_are_named():
    x, y, z = pt.vectors("xyz")
    with pytest.raises(FreezeError, match=r": z, y; give them") as raised:
        freeze([x], [x + z + y, z])
    assert "x" not in str(raised.value).split(":")[1].split(";")[0]


@pytest.mark.parametrize(
    ("error", "message", "make"),
    [
        (FreezeError, "twice.*: x", lambda x: freeze([x, x], [x])),
        (TypeError, "inputs must be a list of variables, not 3", lambda x: freeze(3, [x])),
        (TypeError, "inputs must be a list", lambda x: freeze(x, [x])),
        (TypeError, "outputs must be a list of variables, not nothing", lambda x: freeze([x])),
        (TypeError, r"outputs\[1\] must be a variable, not a str", lambda x: freeze([x], [x, "x"])),
        (TypeError, "alone", lambda x: freeze(FunctionGraph([x], [x + 1]), [x])),
        (TypeError, "pair", lambda x: same_graph(([x], [x]), ([x],))),
        (TypeError, "must be a list", lambda x: same_graph(x, x)),
        (TypeError, r"give .*, f\.maker\.fgraph$", lambda x: freeze(pytensor.function([x], x))),
    ],
)
def test_bad_arguments(error, message, make):
    with pytest.raises(error, match=message):
        make(pt.vector("x"))


def test_a_cycle_is_an_error():
    x = pt.vector("x")
    out = pt.exp(x + 1)
    out.owner.inputs[0].owner.inputs[0] = out
    with pytest.raises(FreezeError, match="cycle"):
        freeze([x], [out])


@pytest.mark.parametrize(
    ("message", "make"),
    [
        ("has 1 inputs, but 2 were given", lambda x: [x, x]),
        ("input 0 must be of .* matrix|input 0 must be of", lambda x: [pt.matrix("m")]),
        ("must be a variable of .*, not a float", lambda x: [1.0]),
        ("input 0 must be of", lambda x: [pt.vector("f", dtype="float32")]),
    ],
)
def test_only_variables_of_the_type_are_bound(message, make):
    with pytest.raises(FreezeError, match=message):
        exp_of_x().bind(make(pt.vector("x")))


@pytest.mark.parametrize("given", [3, None, pt.vector("x")], ids=["number", "nothing", "variable"])
def test_what_is_bound_is_a_list(given):
    with pytest.raises(TypeError, match="inputs must be a list of variables, not "):
        exp_of_x().bind(given)


def test_a_more_specific_type_is_bound():
    (out,) = exp_of_x().bind([TensorType("float64", (3,))("x")])
    np.testing.assert_array_equal(out.eval({out.owner.inputs[0].owner.inputs[0]: np.zeros(3)}), 2)


# Memory and threads -----------------------------------------------------------------------------


def test_no_cycle_keeps_a_graph_alive():
    frozen = exp_of_x()
    op = Itself()
    x = pt.vector("x")
    other = freeze([x], [op(x)])
    repr(other), other.toposort(), other.unfreeze(), hash(other)
    references = weakref.ref(frozen), weakref.ref(other), weakref.ref(op)
    gc.disable()
    try:
        del frozen, other
        assert [reference() for reference in references[:2]] == [None, None]
        del x
    finally:
        gc.enable()
    del op
    gc.collect()
    assert references[2]() is None


def test_a_graph_keeps_what_it_is_made_of_alive():
    x = pt.vector("x")
    frozen = freeze([x], [Itself()(x)])
    gc.collect()
    assert frozen == freeze([x], [frozen.toposort()[0].op(x)])


def test_freezing_again_and_again_takes_no_memory():
    def use(i):
        x = pt.vector("x")
        op = (Itself(), Other(i), Other(lambda: 0))[i % 3]
        freeze([x], [applied(op, [pt.exp(x) * float(i)], [x.type]).outputs[0]])

    fixed = build_once = freeze(*radon_like()[:2]).unfreeze()
    for i in range(30):
        use(i)
    gc.collect()
    before, caches = len(table), sizes()
    tracemalloc.start()
    try:
        for i in range(20_000 if IS_DEEP else 300):
            use(i)
        gc.collect()
        used = tracemalloc.get_traced_memory()[0]
        for _ in range(100_000 if IS_DEEP else 1_000):
            freeze(build_once)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < used + 50_000
    finally:
        tracemalloc.stop()
    # Only the last of the loop may remain, and the ops of the graph that is still there.
    frozen = freeze(fixed)
    own = len(frozen._graph.ops)
    assert len(table) <= before + 2 * len(frozen) + own + 100
    del frozen, fixed, build_once
    gc.collect()
    assert len(table) <= before
    assert all(now <= then for now, then in zip(sizes(), caches, strict=True))
    table.check()


def sizes():
    return [len(c) for c in (terms.remembered, names.objects, equality.equal_objects)]


def test_threads_freeze_the_same_graph():
    inputs, outputs, _ = radon_like()
    fgraph = FunctionGraph(inputs, outputs)
    frozen = []

    def work():
        for _ in range(20):
            frozen.append(freeze(fgraph))
            pickle.loads(pickle.dumps(frozen[-1]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(frozen) == 80
    assert len(set(frozen)) == 1
    table.check()


# Views ------------------------------------------------------------------------------------------


def test_variables_are_views():
    frozen = exp_of_x()
    assert isinstance(frozen.toposort(), tuple)
    node = frozen.toposort()[-1]
    assert not isinstance(node, Apply)
    assert not isinstance(node.inputs[0], Variable)
    with pytest.raises(AttributeError):
        node.op = None
