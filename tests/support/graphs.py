"""Reference graphs, and operations of tests on graphs: describe, run, compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.blockwise import Blockwise

# Reference graphs -------------------------------------------------------------------------


def reverse(vector: Variable) -> Variable:
    """Return a node that cannot be fused and preserves the type of a vector."""
    return vector[::-1]


def deep_small_kernels(n: int) -> FunctionGraph:
    x = pt.matrix("x")
    out = x
    for _ in range(n):
        out = pt.sin(out.T) + pt.cos(out)
    return FunctionGraph([x], [out], clone=False)


def large_fuseable_graph(n: int) -> FunctionGraph:
    sd, means = pt.scalar("sd"), pt.vector("means")
    minus_half, half, two, minus_two = (pt.constant(c) for c in (-0.5, 0.5, 2, -2))
    data = pt.constant(np.ones(10))
    factors = []
    for i in range(n):
        precision = sd**minus_two
        quadratic = minus_half * precision * (data - means[i]) ** two
        factors.append(pt.sum(quadratic + half * pt.log(half * precision / np.pi)))
    logp = pt.add(*factors)
    gradients = [pytensor.grad(logp, v) for v in (sd, means)]
    return FunctionGraph([sd, means], gradients, clone=False)


def small_graph() -> FunctionGraph:
    """Return a graph of one kernel of three nodes, which a node that cannot be fused reads."""
    x, y = pt.vectors("x", "y")
    a = pt.exp(x) + y
    a.name = "a"
    return FunctionGraph([x, y], [pt.sin(a) * a, reverse(a)], clone=False)


class ReadsAnything(Op):
    """Accepts inputs of any types."""

    __props__ = ()

    def make_node(self, *inputs: Variable) -> Apply:
        return Apply(self, inputs, [pt.vector()])

    def perform(self, node: Apply, inputs: list, outputs: list) -> None:
        raise NotImplementedError


# Contents ---------------------------------------------------------------------------------

EXPENSIVE = {
    *("BatchedDot", "CGemv", "CGer", "Dot", "Dot22", "Dot22Scalar", "Gemm", "Gemv", "Ger", "Scan"),
    *("Cholesky", "CholeskySolve", "Eigh", "LUFactor", "Solve", "SolveTriangular"),
    *("Det", "MatrixInverse", "MatrixPinv", "SLogDet", "SVD"),
}


def expensive(fgraph: FunctionGraph) -> Counter[str]:
    """Count the nodes that cost much more than an Elemwise, by kind."""
    kinds: Counter[str] = Counter()
    for node in fgraph.apply_nodes:
        name = type(getattr(node.op, "core_op", node.op)).__name__
        if name in EXPENSIVE:
            batched = isinstance(node.op, Blockwise) and node.op.batch_ndim(node) > 0
            kinds[f"Blockwise {name}" if batched else name] += 1
    return kinds


# Pictures ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Picture:
    """Everything about a graph that planning, or a refused change, must preserve."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    nodes: dict[int, tuple[Any, ...]]
    variables: dict[int, tuple[Any, ...]]
    clients: dict[int, tuple[tuple[int, int], ...]]
    features: tuple[int, ...]
    kept_alive: tuple[object, ...]
    """So that no id in the picture is reused."""

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Picture)
        mine, theirs = ({**vars(p), "kept_alive": None} for p in (self, other))
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]  # Only ever compared.


def picture(fgraph: FunctionGraph, *, client_order: bool = True) -> Picture:
    """Describe a graph.

    Parameters
    ----------
    client_order
        Whether the order of the clients of a variable matters. PyTensor's own revert appends
        clients at the end.
    """

    def in_order(clients: Sequence[tuple[Apply, int]]) -> tuple[tuple[int, int], ...]:
        pairs = [(id(node), position) for node, position in clients]
        return tuple(pairs if client_order else sorted(pairs))

    return Picture(
        inputs=tuple(map(id, fgraph.inputs)),
        outputs=tuple(map(id, fgraph.outputs)),
        nodes={
            id(node): (id(node.op), tuple(map(id, node.inputs)), tuple(map(id, node.outputs)))
            for node in fgraph.apply_nodes
        },
        variables={id(v): (v.name, v.type, id(v.owner)) for v in fgraph.variables},
        clients={id(v): in_order(fgraph.clients[v]) for v in fgraph.variables},
        features=tuple(map(id, fgraph._features)),
        kept_alive=(*fgraph.apply_nodes, *fgraph.variables, *fgraph._features),
    )


def positions(fgraph: FunctionGraph) -> dict[Variable, tuple[int, int]]:
    """Return a name for each variable that depends only on the structure of the graph."""
    names: dict[Variable, tuple[int, int]] = {v: (-1, i) for i, v in enumerate(fgraph.inputs)}
    for i, node in enumerate(io_toposort(fgraph.inputs, fgraph.outputs)):
        for j, inp in enumerate(node.inputs):
            if inp.owner is None and inp not in names:
                names[inp] = (-2 - i, j)
        names.update((out, (i, j)) for j, out in enumerate(node.outputs))
    return names


def fingerprint(plan: Any, fgraph: FunctionGraph) -> list[Any]:
    """Return the effect of a plan in a form that can be compared across clones and processes."""
    names = positions(fgraph)
    return [
        [
            [names[node.outputs[0]] for node in kernel.nodes],
            [names[v] for v in kernel.inputs],
            [names[v] for v in kernel.outputs],
        ]
        for kernel in plan.kernels
    ]


# Results ----------------------------------------------------------------------------------


def evaluate(
    fgraph: FunctionGraph, values: Sequence[np.ndarray], linker: str = "py"
) -> list[np.ndarray]:
    """Run the graph as it is, without rewriting."""
    function = pytensor.function(
        fgraph.inputs,
        fgraph.outputs,
        mode=Mode(linker, optimizer=None),
        on_unused_input="ignore",
        accept_inplace=True,
    )
    return [np.asarray(result) for result in function(*values)]


def computed(fgraph: FunctionGraph, values: list[np.ndarray]) -> dict[Variable, Any]:
    """Return the value of every variable of a graph after a run."""
    variables = [v for node in fgraph.toposort() for v in node.outputs]
    function = pytensor.function(
        fgraph.inputs,
        [pytensor.Out(v, borrow=True) for v in variables],
        mode=Mode("py", optimizer=None),
        on_unused_input="ignore",
    )
    return dict(zip(variables, function(*values), strict=True))


def tolerance_of(fgraph: FunctionGraph) -> float:
    """Return the tolerance for rounding: single precision anywhere affects any output."""
    variables = (v for v in fgraph.variables if not isinstance(v, Constant))
    return 1e-3 if any(v.type.dtype == "float32" for v in variables) else 1e-9


def assert_same_results(
    got: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float = 1e-9
) -> None:
    """Require equal dtypes, shapes, and values up to rounding."""
    assert len(got) == len(expected)
    for i, (g, e) in enumerate(zip(got, expected, strict=True)):
        assert g.dtype == e.dtype, f"output {i}"
        assert g.shape == e.shape, f"output {i}"
        if g.dtype.kind in "fc":
            np.testing.assert_allclose(g, e, rtol=tolerance, atol=tolerance, err_msg=f"output {i}")
        else:
            np.testing.assert_array_equal(g, e, err_msg=f"output {i}")


# Features ---------------------------------------------------------------------------------


class Witness(Feature):
    """Maintains its own copy of the graph from the callbacks alone."""

    def on_attach(self, fgraph: FunctionGraph) -> None:
        self.inputs = {node: list(node.inputs) for node in fgraph.apply_nodes}
        self.output_list = list(fgraph.outputs)
        self.n_calls = 0

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: object) -> None:
        assert node not in self.inputs, f"{node} is imported twice"
        self.n_calls += 1
        self.inputs[node] = list(node.inputs)

    def on_prune(self, fgraph: FunctionGraph, node: Apply, reason: object) -> None:
        self.n_calls += 1
        del self.inputs[node]

    def on_change_input(
        self,
        fgraph: FunctionGraph,
        node: Apply,
        i: int,
        var: Variable,
        new_var: Variable,
        reason: object = None,
    ) -> None:
        self.n_calls += 1
        seen = self.inputs.get(node)
        if seen is None:  # The node that represents an output of the graph.
            assert self.output_list[node.op.idx] is var
            self.output_list[node.op.idx] = new_var
        else:
            assert seen[i] is var
            seen[i] = new_var

    def assert_agrees(self, fgraph: FunctionGraph) -> None:
        assert set(self.inputs) == fgraph.apply_nodes
        for node, inputs in self.inputs.items():
            assert list(map(id, inputs)) == list(map(id, node.inputs))
        assert list(map(id, self.output_list)) == list(map(id, fgraph.outputs))
