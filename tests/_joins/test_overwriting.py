"""Kernels that write into a result still overwrite their inputs by other outputs."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import get_mode

from pytensor_fuse._joins.ops.elemwise import WriteElemwise
from support.joins.outcomes import MODES, PYTHON, check, nodes, rand

pytestmark = pytest.mark.usefixtures("joins_on")

x, y, z = pt.vectors("xyz")


@pytest.mark.usefixtures("always_worth_it")
@pytest.mark.parametrize("mode", MODES)
def test_other_outputs_of_kernels_still_overwrite_inputs(mode):
    # The kernel of the gradients also gives what is summed up later, over what nothing needs.
    spare = pt.cumsum(x)
    a, b = pt.exp(spare) * y, pt.exp(spare) + y
    f = check([x, y, z], [pt.concatenate([a, pt.sin(z)]), b], mode, (rand(6), rand(6), rand(2)))
    [kernel] = [node for node in nodes(f, WriteElemwise) if len(node.outputs) == 2]
    assert len(kernel.op.inplace_pattern) == 2
    state = pytensor.shared(np.ones(6), name="state")
    a, b = pt.exp(spare) * state, pt.exp(spare) + state
    f = pytensor.function(
        [x, z], pt.concatenate([a, pt.sin(z)]), updates={state: b}, mode=get_mode(mode)
    )
    [kernel] = [node for node in nodes(f, WriteElemwise) if len(node.outputs) == 2]
    [written_over] = [
        kernel.inputs[i] for i in kernel.op.inplace_pattern.values() if kernel.inputs[i].name
    ]
    assert written_over.name == "state"
    f(rand(6), rand(2))
    np.testing.assert_allclose(state.get_value(), np.exp(np.cumsum(rand(6))) + 1)


@pytest.mark.usefixtures("always_worth_it")
def test_a_kernel_of_which_python_writes_one_output():
    squares = x * x
    out = [pt.concatenate([squares, y * 2 + 1]), (squares > 0.2) & (squares < 2)]
    f = check([x, y], out, PYTHON, (rand(5), rand(4)))
    [kernel] = [node for node in nodes(f, WriteElemwise) if len(node.outputs) == 2]
    assert list(kernel.op.inplace_pattern) == [0]
