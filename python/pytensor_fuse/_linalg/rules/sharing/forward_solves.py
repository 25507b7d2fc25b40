"""Solves of ``L L' x = c v`` by ``L' x = c z``, if the graph solves ``L z = v``.

If it solves ``L L' x = v``, only a product with ``c`` is left.

A quadratic form needs ``z``, and its gradient ``x``. PyTensor solves for both from ``v``, and for
``x`` by LAPACK's potrs, for which SciPy copies a row-major factor.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular

from pytensor_fuse._linalg.structure.matrices import (
    along_long_axis,
    core_of,
    is_one,
    is_real_matrix,
    long_axes,
    multiple_of,
    same,
    vector_of,
    with_axes,
    without_expansion,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


def solve_from_forward_solve(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Replace a solve of one vector by that of a multiple, with ``L`` or with both factors."""
    core = core_of(node)
    if type(core) is not CholeskySolve or not core.lower:
        return None
    factor, right = node.inputs
    made = core_of(factor.owner)
    # The diagonal of a factor of `Cholesky` has no zeros.
    if not is_real_matrix(factor) or type(made) is not Cholesky or not made.lower:
        return None
    if not _is_one_vector(right, core.b_ndim):
        return None
    # Equal factorizations are merged only later.
    twins: list[Any] = [
        client.outputs[0]
        for client, _ in fgraph.clients[factor.owner.inputs[0]]
        if client.op == factor.owner.op
    ]
    for twin in twins:
        for forward in _forward_solves(fgraph, twin):
            multiple = multiple_of(right, partial(_one_of, vector_of(forward.inputs[1])))
            if multiple is not None:
                solve: Any = Blockwise(SolveTriangular(lower=False, b_ndim=1))
                half = along_long_axis(forward.outputs[0])
                return _in_place_of(fgraph, node, multiple, solve(twin.mT, half))
    for twin in twins:
        for other, at in fgraph.clients[twin]:
            if at or other is node or core_of(other) != core or not other.outputs:
                continue
            base = other.inputs[1]
            multiple = None
            if _is_one_vector(base, core.b_ndim):
                multiple = multiple_of(right, partial(_one_of, vector_of(base)))
            if multiple is not None:
                return _in_place_of(fgraph, node, multiple, along_long_axis(other.outputs[0]))
    return None


def _in_place_of(
    fgraph: FunctionGraph, node: Apply[Any], multiple: Any, vector: Any
) -> dict[Any, Any]:
    """Return the replacements of a solution, and of the variables that only move its axes."""
    [old] = node.outputs
    if not is_one(multiple):
        # With the axis of the vector: PyTensor's passes over axes of numbers are over.
        vector = with_axes(multiple, ("x",)) * vector
    vector = vector.astype(old.type.dtype)
    short_or_long = ["x" if short else 0 for short in old.type.broadcastable]
    found = {old: vector.dimshuffle(short_or_long)}
    for client, _ in fgraph.clients[old]:
        if isinstance(client.op, DimShuffle):
            order = client.op.new_order
            moved = ["x" if axis == "x" else short_or_long[axis] for axis in order]
            found[client.outputs[0]] = vector.dimshuffle(moved)
    return found


def _forward_solves(fgraph: FunctionGraph, factor: Any) -> Iterator[Apply[Any]]:
    """Find the solves of one vector with the lower factor itself."""
    for client, at in fgraph.clients[factor]:
        if not client.outputs:
            continue
        view = client.outputs[0]
        nodes = [(client, at)]
        if without_expansion(view) is factor:
            nodes = list(fgraph.clients[view])
        for one, place in nodes:
            core = core_of(one) if one.outputs else None
            if (
                place == 0
                and type(core) is SolveTriangular
                and core.lower
                and not core.unit_diagonal
                and _is_one_vector(one.inputs[1], core.b_ndim)
            ):
                yield one


def _one_of(known: Any, vector: Any) -> float | None:
    return 1.0 if same(vector, known) else None


def _is_one_vector(right: Any, b_ndim: int) -> bool:
    return long_axes(right) == 1 and not right.type.broadcastable[-b_ndim]
