"""What an audit says a graph is made of, and what of that it does not know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import FromFunctionOp
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.scalar.basic import UnaryScalarOp
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse import audit
from pytensor_fuse._audit.sections.ops.kinds import kind_of
from pytensor_fuse._audit.sections.ops.record import OpKind


class Mystery(Op):
    """Somebody's op: it says nothing."""

    __props__ = ()

    def make_node(self, x: Variable) -> Apply:
        return Apply(self, [pt.as_tensor(x)], [pt.vector()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = np.sort(inputs[0])


def test_unknown_ops_are_reported() -> None:
    x = pt.vector("x")
    mystery = Mystery()
    out = pt.exp(mystery(x)) + mystery(pt.sin(x))
    result = audit(FunctionGraph([x], [out], clone=False), shapes={"x": (10,)})
    [unknown] = result.ops.unknown
    assert unknown.name.endswith("Mystery")
    assert (unknown.nodes, unknown.sizes_known) == (2, False)
    assert result.ops.kinds[OpKind.UNKNOWN] == 2
    assert f"unknown op {Mystery.__module__}.Mystery, 2 nodes" in str(result)
    assert "Mystery" in result.to_html()
    assert result.to_dict()["ops"]["unknown"][0]["nodes"] == 2
    assert [r.node for r in result.memory.results if "Mystery" in r.node]
    assert result.memory.peak.n_unknown


def test_unknown_ops_inside_of_others() -> None:
    x = pt.matrix("x")
    row = pt.vector("row")
    mystery = Mystery()
    inside = OpFromGraph([row], [mystery(row)])
    result = audit(FunctionGraph([x], [inside(x[0])], clone=False))
    [unknown] = result.ops.unknown
    assert len(unknown.first) == 2
    batched = Blockwise(mystery, signature="(n)->(m)")
    result = audit(FunctionGraph([x], [batched(x)], clone=False))
    [unknown] = result.ops.unknown
    assert unknown.name.startswith("Blockwise of")


def test_python_functions_as_ops_are_unknown() -> None:
    def by_hand(x: Any) -> Any:
        return x + 1

    x = pt.dvector("x")
    op = FromFunctionOp(by_hand, [pt.dvector], [pt.dvector], None)
    result = audit(FunctionGraph([x], [op(x)], clone=False))
    [unknown] = result.ops.unknown
    assert "by_hand" in unknown.name


def test_unknown_scalar_ops_in_kernels() -> None:
    class Bump(UnaryScalarOp):
        def impl(self, x: Any) -> Any:
            return x + 1

    x = pt.vector("x")
    bump = Bump(pytensor.scalar.upgrade_to_float, name="bump")
    out = Elemwise(bump)(x) + Elemwise(bump)(pt.exp(x))
    result = audit(FunctionGraph([x], [out, Elemwise(pytensor.scalar.exp)(x)], clone=False))
    [unknown] = result.ops.unknown
    assert unknown.name.endswith("Bump (scalar)")
    assert unknown.nodes == 2
    assert OpKind.UNKNOWN not in result.ops.kinds


def test_a_kernel_is_counted_once() -> None:
    """Also where it is a node around a graph of its own."""
    x, i = pt.vector("x"), pt.lvector("i")
    function = pytensor.function([x, i], [pt.exp(x[i]) * 2, (pt.sin(x) + 1).sum()], mode="NUMBA")
    result = audit(function)
    assert result.ops.kinds[OpKind.KERNEL] == len(result.kernels.kernels)
    assert result.ops.nodes == len(function.maker.fgraph.apply_nodes)
    assert result.ops.inner_nodes == 0


def test_kinds() -> None:
    x, m = pt.vector("x"), pt.matrix("m")
    rng = pytensor.shared(np.random.default_rng(1))
    cases = {
        OpKind.KERNEL: pt.exp(x),
        OpKind.REDUCTION: x.sum(),
        OpKind.MATRIX: m @ m,
        OpKind.INDEXING: x[::2],
        OpKind.SHAPE: m.T,
        OpKind.MAKING: pt.zeros(x.shape),
        OpKind.RANDOM: pt.random.normal(rng=rng, return_next_rng=True)[1],
        OpKind.OTHER: pt.cumsum(x),
    }
    assert {kind: kind_of(v.owner.op) for kind, v in cases.items()} == {
        kind: kind for kind in cases
    }
    assert kind_of(pt.linalg.cholesky(m).owner.op) is OpKind.MATRIX
    assert kind_of(pt.linalg.inv(m).owner.op) is OpKind.MATRIX
