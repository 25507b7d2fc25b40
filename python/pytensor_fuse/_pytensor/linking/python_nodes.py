"""Nodes that run in Python, whatever linker their graph has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Constant
from pytensor.graph.op import Op
from pytensor.link.c.op import COp
from pytensor.tensor.random import basic

from pytensor_fuse._pytensor.linking.optimizers import is_optimizer, link_inner_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytensor.graph.basic import Apply, Variable

    Cells = dict[Variable[Any, Any], list[Any]]


def _known_to_pytensor(names: str) -> frozenset[type]:
    """Return those classes of random variables that this release of PyTensor has."""
    return frozenset(getattr(basic, name) for name in names.split() if hasattr(basic, name))


# Random variables for which PyTensor's code for Numba draws the same numbers from a generator as
# NumPy, in the same order, and computes the same from them except for rounding.
_SAME_DRAWS: Final = _known_to_pytensor(
    "BetaRV BetaBinomialRV BinomialRV CategoricalRV ExponentialRV GammaRV GenGammaRV GeometricRV "
    "HalfCauchyRV HalfNormalRV HyperGeometricRV IntegersRV InvGammaRV LaplaceRV LogNormalRV "
    "LogisticRV MultinomialRV NegBinomialRV NormalRV ParetoRV PermutationRV PoissonRV StudentTRV "
    "TruncExponentialRV UniformRV VonMisesRV WaldRV WeibullRV"
)
# Random variables that Numba computes with parameters in their own dtype.
_IN_SINGLE: Final = (basic.PoissonRV, basic.TriangularRV, basic.WaldRV)
# Classes whose thunks only call `perform`.
_PLAIN: Final = (Op, COp)


def draws_in_single(node: Apply[Any]) -> bool:
    """Whether Numba's draws differ from NumPy's because a parameter has single precision.

    Parameters
    ----------
    node
        The random variable.
    """
    op: Any = node.op
    return isinstance(op, _IN_SINGLE) and any(
        one.type.dtype == "float32" for one in op.dist_params(node)
    )


def same_draws(node: Apply[Any]) -> bool:
    """Whether draws in Python and Numba are the same, and leave the generator in the same state.

    Parameters
    ----------
    node
        The random variable.
    """
    return type(node.op) in _SAME_DRAWS and not draws_in_single(node)


def has_python_code(op: Op) -> bool:
    """Whether a node of an op needs only `perform` to run.

    Parameters
    ----------
    op
        The op.
    """
    classes = type(op).__mro__
    if is_optimizer(op):
        return True
    thunk = next(one for one in classes if "make_thunk" in vars(one))
    code = next((one for one in classes if "perform" in vars(one)), Op)
    return thunk in _PLAIN and code.__module__ != Op.__module__


def steps_of(nodes: Iterable[Apply[Any]], cells: Cells) -> list[Callable[[], object]]:
    """Return callables that run nodes in Python.

    Parameters
    ----------
    nodes
        Nodes whose ops have Python code, or inner graphs of such nodes, in an order in which they
        can run.
    cells
        The cells with the values of variables; missing ones are added.
    """
    steps: list[Callable[[], object]] = []
    for node in nodes:
        for variable in node.inputs:
            if variable not in cells:
                assert isinstance(variable, Constant), "the order computes variables first"
                cells[variable] = [variable.data]
        for variable in node.outputs:
            cells.setdefault(variable, [None])
        if isinstance(node.op, OpFromGraph):
            steps += _inner_steps(node, cells)
        else:
            steps.append(_step(node, cells))
    return steps


def _inner_steps(node: Apply[Any], cells: Cells) -> list[Callable[[], object]]:
    graph = node.op.fgraph
    if hasattr(graph, "unfreeze"):  # In PyTensor 3.3; preparing a node may write to its tag.
        graph = graph.unfreeze()
    inner = {one: cells[variable] for one, variable in zip(graph.inputs, node.inputs, strict=True)}
    steps = steps_of(graph.toposort(), inner)
    moves = [
        (inner[one], cells[variable])
        for one, variable in zip(graph.outputs, node.outputs, strict=True)
    ]

    def move() -> None:
        for source, target in moves:
            target[0] = source[0]

    return [*steps, move]


def _step(node: Apply[Any], cells: Cells) -> Callable[[], object]:
    if is_optimizer(node.op):
        # Otherwise PyTensor would link the function in its own mode while it prepares the node.
        link_inner_function(node.op)
    else:
        node.op.prepare_node(node, cells, None, "py")
    given = [cells[one] for one in node.inputs]
    made = [cells[one] for one in node.outputs]
    perform = node.op.perform

    def step() -> None:
        for cell in made:
            # The op must not overwrite the result of an earlier call.
            cell[0] = None
        perform(node, [cell[0] for cell in given], made)

    return step
