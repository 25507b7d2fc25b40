"""Every op of PyTensor that has an inner graph is the same as another exactly when it should be."""

from __future__ import annotations

import gc
import pickle
import warnings

import numpy as np
import pytensor
import pytensor.scalar.basic as ps
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FrozenFunctionGraph
from pytensor.graph.op import HasInnerGraph
from pytensor.scalar.basic import Composite
from pytensor.scalar.loop import ScalarLoop
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.optimize import minimize, minimize_scalar, root, root_scalar

import pytensor_fuse
from pytensor_fuse import freeze
from pytensor_fuse._identity.terms import term
from support.classes import every_class

# The newest PyTensor whose classes all have a maker below. Of a newer one, those that have
# none are left out: that there are more is no fault of what is tested.
EVERY_CLASS_UP_TO = (3, 3, 8)

# Bases, of which there are no ops.
ABSTRACT = {
    "FusibleSymbolicOp",
    "HasInnerFunction",
    "ScalarInnerGraphOp",
    "ScipyScalarWrapperOp",
    "ScipyVectorWrapperOp",
    "ScipyWrapperOp",
    "SymbolicOp",
    "TensorSymbolicOp",
}

# Each makes an op or a variable that it computes; another number, another inner graph.
MAKERS = {}


def maker(*names):
    def add(function):
        for name in names:
            MAKERS[name] = function
        return function

    return add


@maker("Composite")
def composite(number, kind):
    x, y = ps.float64("x"), ps.float64("y")
    return Composite([x, y], [x * y / float(number), x + y])


@maker("ScalarLoop", "Grad2F1Loop")
def scalar_loop(number, kind):
    x, y = ps.float64("x"), ps.float64("y")
    return kind([x], [x * y + float(number)], constant=[y])


@maker("Scan")
def scan(number, kind):
    with warnings.catch_warnings():
        # What it returns changes; that of one state is one variable in both.
        warnings.simplefilter("ignore")
        return pytensor.scan(
            lambda step, state: step * state + float(number),
            sequences=[pt.vector("x")],
            outputs_info=[pt.constant(np.float64(1.0))],
            return_updates=False,
        )


@maker(
    "BlockwiseWithCoreShape",
    "FinalizedOpFromGraph",
    "FusedElemwise",
    "FusibleSymbolicOpDerivative",
    "IndexedElemwise",
    "OpFromGraph",
    "OpWithCoreShape",
    "RandomVariableWithCoreShape",
    "ScalarCAReduce",
    "ScalarSubtensor",
    "ScalarizedElemwise",
    "ScalarizedJoin",
)
def op_from_graph(number, kind):
    x, y = pt.vectors("xy")
    return kind([x, y], [pt.exp(x) / float(number), x + y])


@maker("AllocDiag")
def alloc_diag(number, kind):
    return pt.diag(pt.vector("x"), k=number)


@maker("Einsum")
def einsum(number, kind):
    return pt.einsum(("ij,jk->ik", "ij,jk->ki", "ij,kj->ik")[number], pt.matrix(), pt.matrix())


@maker("KroneckerProduct")
def kron(number, kind):
    return pt.linalg.kron(pt.tensor(shape=(number, None)), pt.matrix())


@maker("SolveSylvester")
def sylvester(number, kind):
    return pt.linalg.solve_sylvester(pt.matrix(), pt.matrix(), pt.tensor(shape=(number, None)))


@maker("SolveBilinearDiscreteLyapunov")
def lyapunov(number, kind):
    q = pt.tensor(shape=(number, number))
    return pt.linalg.solve_discrete_lyapunov(pt.matrix(), q, method="bilinear")


@maker("SolveDiscreteARE")
def riccati(number, kind):
    a, b, r = (pt.matrix() for _ in range(3))
    return pt.linalg.solve_discrete_are(a, b, pt.tensor(shape=(number, number)), r)


@maker("MinimizeScalarOp")
def smallest(number, kind):
    x = pt.scalar("x")
    return minimize_scalar((x - float(number)) ** 2, x)[0]


@maker("MinimizeOp")
def smallest_vector(number, kind):
    x = pt.vector("x")
    return minimize(((x - float(number)) ** 2).sum(), x)[0]


@maker("RootScalarOp")
def zero(number, kind):
    x = pt.scalar("x")
    return root_scalar(x**2 - float(number), x, method="newton", jac=True)[0]


@maker("RootOp")
def zero_vector(number, kind):
    x = pt.vector("x")
    return root(x**2 - float(number), x)[0]


@maker("Pad")
def pad(number, kind):
    return pt.pad(pt.vector("x"), 1, mode=("constant", "edge", "reflect")[number])


@maker("Softmax", "LogSoftmax", "LogSumExp")
def along_an_axis(number, kind):
    x = pt.tensor("x", shape=(None,) * 3)
    return kind(axis=(number,) if kind.__name__ == "LogSumExp" else number)(x)


@maker("LogAddExp", "XLogY", "XLog1PY")
def pairwise(number, kind):
    shape = (None,) * number
    return kind()(pt.tensor("x", shape=shape), pt.tensor("y", shape=shape))


def concrete():
    return [kind for kind in every_class(HasInnerGraph) if kind.__name__ not in ABSTRACT]


def tried():
    return [kind for kind in concrete() if kind.__name__ in MAKERS]


def make(kind, number):
    """The op, or the one of this class that computes the variable."""
    made = MAKERS[kind.__name__](number, kind)
    if isinstance(made, HasInnerGraph):
        return made
    pending = [made]
    while pending:
        node = pending.pop().owner
        if node is not None:
            op = getattr(node.op, "core_op", node.op)
            if type(op) is kind:
                return op
            pending += node.inputs
    raise AssertionError(f"{kind.__name__} does not compute {made}")


def pickled(thing):
    """What is read from a pickle; None if PyTensor 3.0 makes an op of what is not yet read."""
    try:
        return pickle.loads(pickle.dumps(thing))
    except AttributeError:
        assert not hasattr(FrozenFunctionGraph, "from_io")
        return None


def test_every_class_is_tried():
    assert len(tried()) > 20
    version = tuple(int(part) for part in pytensor.__version__.split(".")[:3])
    if version <= EVERY_CLASS_UP_TO:
        assert {kind.__name__ for kind in concrete()} <= MAKERS.keys()


@pytest.mark.parametrize("kind", tried(), ids=lambda kind: kind.__name__)
def test_ops_with_inner_graphs(kind):
    a, b, c = make(kind, 1), make(kind, 1), make(kind, 2)
    # In PyTensor 3.0, some are equal whatever they compute.
    assert term(a) != term(c)
    assert (term(a) == term(b)) == (a == b)
    if kind.__eq__ is object.__eq__:
        assert a != b
        return
    assert a == b
    assert term(a).digest == term(b).digest is not None
    if (read := pickled(a)) is not None:
        assert term(read) == term(a)


@pytest.mark.parametrize("kind", tried(), ids=lambda kind: kind.__name__)
def test_graphs_of_such_ops(kind):
    op = make(kind, 1)
    inner = freeze(op.fgraph)
    assert freeze(op.fgraph.unfreeze() if hasattr(op.fgraph, "unfreeze") else op.fgraph) == inner
    inputs = [variable.type() for variable in op.fgraph.inputs]
    types = [variable.type for variable in op.fgraph.outputs]
    node = Apply(op, inputs, [kind.make_variable() for kind in types])
    frozen = freeze(inputs, node.outputs)
    assert frozen.toposort()[0].op is op
    assert frozen.unfreeze().outputs[0].owner.op is op
    if (read := pickled(frozen)) is not None:
        assert read == frozen or kind.__eq__ is object.__eq__


@pytest.mark.parametrize("kind", [Composite, ScalarLoop, OpFromGraph], ids=lambda k: k.__name__)
def test_zeros_of_either_sign_in_inner_graphs(kind):
    def graph(zero):
        v = pt.vector("v")
        if kind is OpFromGraph:
            x = pt.vector("x")
            return freeze([v], [kind([x], [x / zero])(v)])
        x = ps.float64("x")
        steps = [pt.constant(2)] if kind is ScalarLoop else []
        return freeze([v], [Elemwise(kind([x], [x + x / zero]))(*steps, v)])

    # While one is alive, PyTensor may make the other of the same inner nodes.
    digests = []
    for zero in (0.0, -0.0, 0.0):
        gc.collect()
        digests.append(graph(zero).digest)
    assert digests[0] == digests[2] != digests[1]


def test_zeros_of_either_sign_in_composites_that_are_both_alive():
    with pytensor_fuse.enabled(True):
        x = ps.float64("x")
        plus, minus = (Composite([x], [x / zero]) for zero in (0.0, -0.0))
        assert term(plus) != term(minus)


def test_loops_that_end_early_are_others():
    # PyTensor takes them for equal: the same inner graph, of which one reads the last output.
    x0, b0 = ps.float64("x0"), ps.bool("b0")
    x1 = x0 + 1.0
    ends = ps.ge(x1, 4.0)
    whole = ScalarLoop(init=[x0, b0], update=[x1, ends])
    early = ScalarLoop(init=[x0], constant=[b0], update=[x1], until=ends)
    x, b = ps.float64("x"), ps.bool("b")
    graphs = [freeze([x, b], op(10, x, b)) for op in (whole, early)]
    assert graphs[0] != graphs[1]
    assert graphs[0].digest != graphs[1].digest
