"""`WriteElemwise`: its loops in C, and NumPy's functions in Python."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply
from pytensor.scalar.basic import (
    Composite,
    UnaryScalarOp,
    float64,
    upgrade_to_float,
)
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse._joins.ops.elemwise import WriteElemwise
from support.joins.ops import compile_
from support.joins.outcomes import PYTHON, WRITTEN, check, nodes, rand, reasons

pytestmark = pytest.mark.usefixtures("joins_on")

x, y, z = pt.vectors("xyz")
A, B = pt.matrices("AB")


@pytest.mark.usefixtures("always_worth_it")
def test_one_scalar_op_is_run_by_numpy():
    f = check(
        [x, y, z, A],
        pt.concatenate([pt.exp(x), z + y, pt.tanh(A).ravel()]),
        PYTHON,
        (rand(5), rand(6), rand(6), rand(2, 3)),
    )
    kernels = nodes(f, WriteElemwise)
    assert len(kernels) == 3
    assert all(node.tag.alone is not None for node in kernels)
    i = pt.ivector("i")
    values = np.arange(1, 4, dtype="int32"), rand(5)
    check([i, x], pt.concatenate([pt.sqrt(i), -x]), PYTHON, values)
    with pytest.raises(ValueError, match=r"(?i)shape|broadcast"):
        f(rand(5), rand(5), rand(6), rand(2, 3))


def test_contiguous_rows_of_any_number_of_dimensions():
    tensors = pt.tensor4s("tuv")
    t, u, v = tensors
    shapes = (2, 3, 4, 20), (1, 3, 1, 17), (2, 0, 3, 18), (2, 3, 2, 0), (3, 2, 2, 5)
    values = [(rand(*shape),) * 3 for shape in shapes]
    values += [
        (rand(20, 4, 3, 2).T, rand(2, 3, 4, 20), rand(2, 3, 4, 40)[..., ::-2]),
        (rand(2, 3, 4, 20),) * 2 + (rand(3, 4, 20, 2).transpose(3, 0, 1, 2),),
    ]
    for axis in (1, 2, 3):
        out = pt.concatenate([t * 2 + x.sum(), u - 1, pt.exp(v)], axis=axis)
        f = check([*tensors, x], out, "CVM", *((*case, rand(3)) for case in values))
        assert len(nodes(f, WriteElemwise)) == 3


class Scaled(UnaryScalarOp):
    """Calls a function of its own support code."""

    def impl(self, a):
        return a * 2.5

    def c_support_code_apply(self, node, name):
        return f"static double {name}_scaled(double a) {{ return a * 2.5; }}"

    def c_code(self, node, name, inputs, outputs, sub):
        return f"{outputs[0]} = {name}_scaled({inputs[0]});"

    def c_code_cache_version(self):
        return (1,)


@pytest.mark.parametrize("more", [0, 1])
def test_scalar_ops_with_support_code(more):
    scaled = Elemwise(Scaled(upgrade_to_float, name="scaled"))
    f = check([x, y], pt.concatenate([scaled(x) + more, scaled(y)]), "CVM", (rand(20), rand(30)))
    assert reasons(f) == (WRITTEN, WRITTEN)


@pytest.mark.parametrize("name", ["NUMBA", "CVM"])
def test_kernels_read_scalars_and_columns(name):
    # The C loop for contiguous operands must not be taken for these, or with a fixed element.
    x, column, scalar, out = pt.matrix("x"), pt.col("c"), pt.scalar("s"), pt.matrix("out")
    ins = [float64() for _ in range(4)]
    kernel = WriteElemwise(Composite(ins, [ins[0] * ins[1] + ins[2]]), {0: 3})
    node: Apply = kernel.make_node(x, column, scalar.dimshuffle("x", "x"), out)
    f = compile_([x, column, scalar, out], node.outputs[0], name)
    a, c = np.arange(6.0).reshape(2, 3), np.array([[2.0], [3.0]])
    np.testing.assert_array_equal(f(a, c, 5.0, np.empty((2, 3))), a * c + 5)
    ins = [float64() for _ in range(3)]
    kernel = WriteElemwise(Composite(ins, [ins[0] + ins[1]]), {0: 2})
    node = kernel.make_node(x, scalar.dimshuffle("x", "x"), out)
    f = compile_([x, scalar, out], node.outputs[0], name)
    for layout in (a, a.T, a[:, ::-1], np.asfortranarray(a)):
        np.testing.assert_array_equal(f(layout, 5.0, np.empty(layout.shape)), layout + 5)
