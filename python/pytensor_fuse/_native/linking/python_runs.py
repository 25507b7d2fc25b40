"""Functions that run regions of machine code, and Python code instead of Numba's for the rest.

Numba compiles for seconds for a run of a millisecond. Functions that are known to run once
therefore run in Python; if they run again and again nevertheless, Numba compiles them once their
runs have cost as much as the compilation. Functions in which Numba would compile nothing but calls
back into Python, to SciPy's optimizers, always run in Python.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pytensor.configdefaults import config
from pytensor.graph.basic import Constant
from pytensor.link.utils import raise_with_op
from pytensor.scalar.basic import ScalarType

from pytensor_fuse._core import NativeFunction
from pytensor_fuse._native.linking.python_costs import COMPILE, run_cost, why_not_python
from pytensor_fuse._native.linking.regions import NativeRegion, Parts, in_parts, weight
from pytensor_fuse._native.linking.thunks import code_arguments
from pytensor_fuse._pytensor.linking.known_runs import known_runs, runs_known
from pytensor_fuse._pytensor.linking.optimizers import is_optimizer
from pytensor_fuse._pytensor.linking.python_nodes import steps_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._native.lowering.types import Node, Nodes, Variable
    from pytensor_fuse._pytensor.linking.python_nodes import Cells

# A region pays off for any node that does more than make a view of an array: in Python, a kernel
# would be a loop over its elements.
_LEAST_WEIGHT: Final = 2


class PythonRun:
    """A thunk that runs a graph in Python instead of the function that Numba would compile.

    Parameters
    ----------
    fgraph
        The graph.
    parts
        The graph, split into regions and other nodes.
    cost
        The cost of a run; None if Numba would save nothing of it.
    storage_map
        The storage of its variables.
    compile_graph
        A function that compiles the graph by Numba and returns the thunk.

    Attributes
    ----------
    parts
        The graph, split into regions and other nodes.
    compiled
        Numba's thunk of the graph, once it is compiled.
    n_runs
        The number of runs in Python so far.
    most_runs
        The number of runs before Numba compiles it; None if it never does.
    inputs, outputs
        The storage of the inputs and outputs.
    lazy
        False: all inputs are read at once.
    allow_gc, storage_map
        Set by PyTensor.
    """

    lazy = False
    allow_gc: bool
    storage_map: Any

    def __init__(
        self,
        fgraph: FunctionGraph,
        parts: Parts,
        cost: int | None,
        storage_map: dict[Variable, list[Any]],
        compile_graph: Callable[[], Any],
    ) -> None:
        self.parts = parts
        self.compiled: Any = None
        self.n_runs = 0
        self.most_runs = None if cost is None else COMPILE // cost
        self.inputs = [storage_map[one] for one in fgraph.inputs]
        self.outputs = [storage_map[one] for one in fgraph.outputs]
        self._fgraph = fgraph
        self._blamed = next(one.owner for one in fgraph.outputs if one.owner is not None)
        self._compile_graph = compile_graph
        self._fastmath = config.numba__fastmath
        copies = parts.fgraph
        cells: Cells = dict(zip(copies.inputs, self.inputs, strict=True))
        given = set(cells)
        self._steps: list[Callable[[], object]] = []
        for node in parts.order:
            if isinstance(node.op, NativeRegion):
                self._steps.append(_region_step(node, cells))
            else:
                self._steps += steps_of([node], cells)
        for one in copies.outputs:
            if isinstance(one, Constant):
                cells.setdefault(one, [one.data])
        self._results = [
            (cells[one], cell) for one, cell in zip(copies.outputs, self.outputs, strict=True)
        ]
        self._cleared = [
            cells[out] for node in parts.order for out in node.outputs if out not in given
        ]

    def __call__(self) -> Any:
        """Run on the contents of the inputs' storage; the results go to that of the outputs."""
        if self.compiled is None and self.n_runs == self.most_runs:
            self._compile()
        if self.compiled is not None:
            return self.compiled()
        self.n_runs += 1
        try:
            # Numba's code does not report overflows and divisions by zero.
            with nullcontext() if self.most_runs is None else np.errstate(all="ignore"):
                for step in self._steps:
                    step()
        except Exception:
            raise_with_op(self._fgraph, self._blamed, self)
        for source, target in self._results:
            target[0] = source[0]
        for cell in self._cleared:
            cell[0] = None
        return None

    @property
    def jit_fn(self) -> Any:
        """Numba's function for the graph, which is compiled on the first access."""
        if self.compiled is None:
            self._compile()
        return self.compiled.jit_fn

    @jit_fn.setter
    def jit_fn(self, value: Any) -> None:
        # PyTensor assigns the linker's result, which is None: the function is compiled on demand.
        if value is not None:
            self.compiled.jit_fn = value

    def _compile(self) -> None:
        with config.change_flags(numba__fastmath=self._fastmath):
            thunk, thunk.jit_fn = self._compile_graph()
        thunk.allow_gc, thunk.storage_map = self.allow_gc, self.storage_map
        self.compiled = thunk


def python_run(
    fgraph: FunctionGraph,
    nodes: Nodes,
    storage_map: dict[Variable, list[Any]],
    compile_graph: Callable[[], Any],
) -> PythonRun | None:
    """Return a thunk that runs a graph in Python, if that takes less time than Numba's compilation.

    Parameters
    ----------
    fgraph
        The graph, which is not machine code as a whole.
    nodes
        Its nodes in the order of execution.
    storage_map
        The storage of its variables.
    compile_graph
        A function that compiles the graph by Numba and returns the thunk and the dispatcher.

    Raises
    ------
    NoRuleError, RuntimeError
        If a region cannot be compiled.
    """
    n_runs = known_runs()
    has_optimizers = any(is_optimizer(node.op) for node in nodes)
    if not (has_optimizers or n_runs is not None):
        return None
    if not any(one.owner is not None for one in fgraph.outputs):
        return None
    parts = in_parts(fgraph, nodes, _LEAST_WEIGHT) or Parts(fgraph, list(nodes), [])
    others = [node for node in parts.order if not isinstance(node.op, NativeRegion)]
    if why_not_python(others) is not None:
        return None
    cost: int | None = None
    if not (has_optimizers and all(_is_as_soon_in_python(node) for node in others)):
        cost = run_cost(others, len(parts.regions))
        if n_runs is None or n_runs * cost > COMPILE:
            return None
    # A function that an op compiles to call it in a loop runs more than once.
    with runs_known(None):
        return PythonRun(fgraph, parts, cost, storage_map, compile_graph)


def _is_as_soon_in_python(node: Node) -> bool:
    """Whether Numba would run a node in Python as well, or the node takes hardly any time."""
    return is_optimizer(node.op) or weight(node) < _LEAST_WEIGHT


def _region_step(node: Node, cells: Cells) -> Callable[[], object]:
    region = node.op
    function = NativeFunction(
        *code_arguments(region.compiled, region.inner_inputs, region.inner_outputs)
    )
    given = [cells[one] for one in node.inputs]
    made = [cells.setdefault(one, [None]) for one in node.outputs]
    are_numbers = [isinstance(one.type, ScalarType) for one in node.outputs]

    def step() -> None:
        found = function.call([cell[0] for cell in given])
        for cell, value, is_number in zip(made, found, are_numbers, strict=True):
            cell[0] = value[()] if is_number else value

    return step
