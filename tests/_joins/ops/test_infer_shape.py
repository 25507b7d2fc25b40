"""The shapes that the ops infer are those of what they compute."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import Composite, float64
from pytensor.tensor.rewriting.shape import ShapeFeature

from pytensor_fuse._joins.ops.elemwise import WriteElemwise
from pytensor_fuse._joins.ops.fill import WriteFill
from pytensor_fuse._joins.ops.join import WriteJoin
from pytensor_fuse._joins.ops.layout import (
    JoinLayout,
    dim_length,
    static_length,
    value_length,
)
from pytensor_fuse._joins.ops.split import WriteSplit
from pytensor_fuse._pytensor.ops.versions_of_ops import infer_shape

AS_IT_IS = Mode("py", optimizer=None)


def graph_of_ops(axis, ndim, shapes, inputs, written, type_shape=None):
    """Split, then write the parts: by a kernel, or fill the last; then join."""
    split = WriteSplit(JoinLayout(axis, ndim, "float64", shapes, written)).make_node(*inputs)
    memory, *parts = split.outputs
    x, target = float64(), float64()
    double = WriteElemwise(Composite([x, target], [x * 2.0]), {0: 1})
    done = [double(pt.ones_like(part), part) for part in parts[:-1]]
    done.append(WriteFill()(pt.constant(3.0), parts[-1]))
    following = iter(done)
    streams = [
        next(following) if is_written else pt.ones([1] * max(ndim, 1)) for is_written in written
    ]
    join = WriteJoin(axis, "float64", type_shape or (None,) * ndim, written)
    return [split, *(v.owner for v in done), join.make_node(memory, *streams)]


def cases():
    n = pt.lscalar("n")
    v, m, t = pt.vector("v"), pt.matrix("m"), pt.tensor3("t")
    both = (dim_length(0, 0), dim_length(0, 1))
    yield pytest.param(
        graph_of_ops(0, 1, ((dim_length(0, 0),), both), [m], (True, True)),
        [m],
        [np.ones((2, 3)), np.ones((0, 4))],
        id="a vector of what is raveled",
    )
    yield pytest.param(
        graph_of_ops(
            0,
            1,
            ((dim_length(0, 0),), (static_length(1),), (static_length(7),), (value_length(1),)),
            [v, n],
            (True, False, True, True),
        ),
        [v, n],
        [(np.ones(3), 4), (np.ones(0), 0)],
        id="numbers and values",
    )
    yield pytest.param(
        graph_of_ops(0, 1, ((), (dim_length(0, 0),)), [v], (True, True)),
        [v],
        [np.ones(3)],
        id="a number by itself",
    )
    for axis in (0, 1, 2):
        shape = tuple(dim_length(0, d) for d in range(3))
        known = tuple(static_length(5) if d == axis else dim_length(0, d) for d in range(3))
        yield pytest.param(
            graph_of_ops(axis, 3, (shape, known, shape), [t], (True,) * 3),
            [t],
            [np.ones((2, 3, 4)), np.ones((2, 0, 1))],
            id=f"along axis {axis}",
        )
    yield pytest.param(
        graph_of_ops(1, 2, (both, (static_length(2), static_length(3))), [m], (True, True)),
        [m],
        [np.ones((2, 4))],
        id="a length that one stream knows",
    )


def inferred(node):
    """Return the shapes that the op infers from those of its inputs."""
    shapes = [[v.shape[d] for d in range(v.type.ndim)] for v in node.inputs]
    return infer_shape(node, shapes)


@pytest.mark.parametrize(("nodes", "inputs", "calls"), list(cases()))
def test_inferred_shapes_are_those_of_results(nodes, inputs, calls):
    outputs = [
        (variable, shape)
        for node in nodes
        for variable, shape in zip(node.outputs, inferred(node), strict=True)
        if hasattr(variable.type, "ndim")
    ]
    # A joined part is destroyed: each is asked for in a function of its own.
    for variable, shape in outputs:
        assert len(shape) == variable.type.ndim
        of_result = pytensor.function(
            inputs, variable.shape, mode=AS_IT_IS, accept_inplace=True, on_unused_input="ignore"
        )
        of_shape = pytensor.function(
            inputs,
            pt.as_tensor([pt.as_tensor(n, dtype="int64") for n in shape], dtype="int64", ndim=1)
            if shape
            else pt.zeros(0, dtype="int64"),
            mode=AS_IT_IS,
            accept_inplace=True,
            on_unused_input="ignore",
        )
        for values in calls:
            values = values if isinstance(values, tuple) else (values,)
            np.testing.assert_array_equal(of_shape(*values), of_result(*values))


@pytest.mark.parametrize(("nodes", "inputs", "calls"), list(cases()))
def test_pytensor_takes_what_they_infer(nodes, inputs, calls):
    """No part is computed for a shape: lengths come from what the ops read."""
    join = nodes[-1]
    fgraph = FunctionGraph(inputs, [join.outputs[0]], clone=False)
    fgraph.attach_feature(ShapeFeature())
    [joined] = fgraph.outputs
    lengths = [fgraph.shape_feature.get_shape(joined, d) for d in range(joined.type.ndim)]
    f = pytensor.function(inputs, lengths, mode="FAST_COMPILE", on_unused_input="ignore")
    ops = {type(node.op) for node in f.maker.fgraph.apply_nodes}
    assert not ops & {WriteSplit, WriteJoin, WriteElemwise, WriteFill}
    whole = pytensor.function(inputs, join.outputs[0], mode=AS_IT_IS, accept_inplace=True)
    for values in calls:
        values = values if isinstance(values, tuple) else (values,)
        assert tuple(f(*values)) == whole(*values).shape


def test_lengths_of_which_one_is_a_number_are_that_number():
    m = pt.matrix("m")
    join = WriteJoin(0, "float64", (None, None), (False, False)).make_node(pt.zeros(0), m, m)
    shapes = [[pt.constant(0)], [pt.lscalar(), pt.lscalar()], [pt.lscalar(), pt.constant(3)]]
    [(_, length)] = infer_shape(join, shapes)
    assert length is shapes[2][1]
