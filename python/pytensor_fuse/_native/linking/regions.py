"""Regions: the fewest groups of nodes with rules in graphs where other nodes have none.

A region becomes one node in a copy of the graph that only Numba's dispatch sees. Numba compiles the
rest and calls the regions.

Regions never write to their inputs: where the graph overwrites a value in place, its region copies
that. A region may thus run whenever all of its nodes may, and its results alias nothing.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from hashlib import blake2b
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from pytensor.configdefaults import config
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.tensor.basic import ScalarFromTensor, TensorFromScalar
from pytensor.tensor.blas import BatchedDot
from pytensor.tensor.blockwise import Blockwise, BlockwiseWithCoreShape
from pytensor.tensor.elemwise import CAReduce, DimShuffle
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Argmax, Dot
from pytensor.tensor.shape import Shape_i, SpecifyShape

from pytensor_fuse._core import native_regions
from pytensor_fuse._imports import after_import
from pytensor_fuse._native.linking.addresses import shared_place
from pytensor_fuse._native.lowering.graph import lower_graph, variable_refusal
from pytensor_fuse._native.lowering.parts import is_array
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.runtime.compiling import compile_program
from pytensor_fuse._native.runtime.llvm import versions
from pytensor_fuse._native.setting import calls_libm
from pytensor_fuse._pytensor.ops.fused_elemwise import indexes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor_fuse._native.lowering.types import Node, Nodes, Variable, Variables
    from pytensor_fuse._native.runtime.compiling import Compiled

# The compile time of a region's call in Numba equals that of two loops over elements, a tenth of a
# second. Reductions take several times as long, and nodes without a loop half of that, or less.
_LEAST_WEIGHT: Final = 4
_HEAVY: Final = (CAReduce, Argmax, CumOp, Dot, BatchedDot, Blockwise, BlockwiseWithCoreShape)
# The modules of the linear algebra ops.
_MATRICES: Final = ("pytensor.tensor.linalg.", "pytensor_fuse._linalg.ops.")
_LIGHT: Final = (DimShuffle, Shape_i, SpecifyShape, ScalarFromTensor, TensorFromScalar)


class NativeRegion(Op):
    """Machine code as an op, which occurs only in the graphs that Numba translates.

    Parameters
    ----------
    compiled
        The code.
    inputs, outputs
        The variables of its graph.

    Attributes
    ----------
    place
        The place where Numba's code finds it.
    """

    __props__ = ("digest",)

    def __init__(self, compiled: Compiled, inputs: Variables, outputs: Variables) -> None:
        self.inner_inputs = tuple(inputs)
        self.inner_outputs = tuple(outputs)
        self.digest = _digest(compiled, [*inputs, *outputs], len(inputs))
        self.place = shared_place(self.digest, compiled)
        # An equal region may have a place already.
        self.compiled = self.place.compiled

    def make_node(self, *inputs: Variable) -> Node:
        """Return a node of the op."""
        return Apply(self, list(inputs), [one.type() for one in self.inner_outputs])

    def perform(self, node: Node, inputs: Any, output_storage: Any) -> None:
        """Raise, because only Numba calls a region."""
        raise NotImplementedError("machine code of a region is for Numba's linker")


def _digest(compiled: Compiled, variables: Variables, n_inputs: int) -> str:
    """Return a digest of everything that determines the effect of a call of machine code."""
    made = blake2b(b"pytensor-fuse region 2 ", digest_size=20)
    failures = [
        (one.exception.__module__, one.exception.__qualname__, one.message)
        for one in compiled.program.failures
    ]
    types = [(str(one.type), getattr(one.type, "shape", ())) for one in variables]
    shapes = [(array.dtype.str, array.shape) for array in compiled.constants]
    parts = (versions(), failures, types, n_inputs, shapes, compiled.placement.total)
    made.update(repr(parts).encode())
    made.update(compiled.module.text.encode())
    for array in compiled.constants:
        made.update(array.data.cast("B") if array.size else b"")
    return made.hexdigest()


class Parts(NamedTuple):
    """A graph, split into regions and other nodes.

    Attributes
    ----------
    fgraph
        A copy of the graph in which each region is one node.
    order
        Its nodes in an executable order, readers of a value before those who overwrite it.
    regions
        The regions.
    """

    fgraph: FunctionGraph
    order: list[Node]
    regions: list[NativeRegion]

    def told(self) -> bytes:
        """Return a key that distinguishes these parts from other partitions of an equal graph."""
        return " ".join([one.digest for one in self.regions]).encode()


_parts: Final[WeakKeyDictionary[FunctionGraph, Parts]] = WeakKeyDictionary()


def parts_of(fgraph: FunctionGraph) -> Parts | None:
    """Return the parts of a graph that is being linked; None if it is not split."""
    return _parts.get(fgraph)


@contextmanager
def whole(fgraph: FunctionGraph) -> Iterator[None]:
    """Let Numba's dispatch translate a graph as a whole within the context."""
    parts = _parts.pop(fgraph, None)
    try:
        yield
    finally:
        if parts is not None:
            _parts[fgraph] = parts


def take_apart(fgraph: FunctionGraph, nodes: Nodes) -> Parts | None:
    """Let Numba's dispatch translate a graph in parts, if the regions are worth it.

    Parameters
    ----------
    fgraph
        The graph, which does not change.
    nodes
        Its nodes in the order of execution.

    Returns
    -------
    Parts or None
        The parts; None if Numba compiles all of the graph.

    Raises
    ------
    NoRuleError, RuntimeError
        If a region cannot be compiled.
    """
    made = in_parts(fgraph, nodes, _LEAST_WEIGHT)
    if made is not None:
        _parts[fgraph] = made
    return made


def in_parts(fgraph: FunctionGraph, nodes: Nodes, least_weight: int) -> Parts | None:
    """Return the parts of a graph for `take_apart`, if the regions are worth it.

    Parameters
    ----------
    fgraph
        The graph, which does not change.
    nodes
        Its nodes in the order of execution.
    least_weight
        The least total weight of a region's nodes.
    """
    groups = _groups(fgraph, nodes, least_weight)
    return None if groups is None else _copied(fgraph, groups)


def _is_native(node: Node) -> bool:
    """Whether a node may be in a region: it has a rule, and Numba has its operands and results."""
    touched = [one for one in node.inputs if not isinstance(one, Constant)]
    variables = (*touched, *node.outputs)
    if any(not is_array(one) or variable_refusal(one) is not None for one in variables):
        return False
    return lower.refusal(node) is None


def weight(node: Node) -> int:
    """Return the benefit of a node in a region, provided that it has a rule.

    Parameters
    ----------
    node
        The node.
    """
    op = node.op
    if isinstance(op, _HEAVY) or indexes(op) or type(op).__module__.startswith(_MATRICES):
        return 4
    return 1 if isinstance(op, _LIGHT) else 2


def _groups(
    fgraph: FunctionGraph, nodes: Nodes, least_weight: int
) -> list[tuple[list[Node], bool]] | None:
    """Return the nodes in groups in the order of execution, and whether each group is a region."""
    is_native = [_is_native(node) for node in nodes]
    weights = [weight(node) * is_one for node, is_one in zip(nodes, is_native, strict=True)]
    if sum(weights) < least_weight:
        return None
    positions = {node: position for position, node in enumerate(nodes)}
    edges = [
        (positions[variable.owner], position)
        for position, node in enumerate(nodes)
        for variable in node.inputs
        if variable.owner is not None
    ]
    # Readers of a value come before the node that overwrites it.
    for node, before in fgraph.orderings().items():
        edges += [(positions[one], positions[node]) for one in before]
    numbers = native_regions(
        len(nodes), [one for one, _ in edges], [other for _, other in edges], is_native
    )
    members: dict[int, list[int]] = {}
    for position, number in enumerate(numbers):
        members.setdefault(number, []).append(position)
    groups = [
        ([nodes[one] for one in own], sum(weights[one] for one in own) >= least_weight)
        for _, own in sorted(members.items())
    ]
    return groups if any(is_region for _, is_region in groups) else None


def _copied(fgraph: FunctionGraph, groups: list[tuple[list[Node], bool]]) -> Parts:
    copies: dict[Variable, Variable] = {one: one.clone() for one in fgraph.inputs}

    def copy(variable: Variable) -> Variable:
        return variable if isinstance(variable, Constant) else copies[variable]

    order: list[Node] = []
    regions: list[NativeRegion] = []
    for nodes, is_region in groups:
        if is_region:
            region = _region(fgraph, nodes)
            new = region.make_node(*[copy(one) for one in region.inner_inputs])
            order.append(new)
            regions.append(region)
            copies.update(zip(region.inner_outputs, new.outputs, strict=True))
            continue
        for node in nodes:
            new = node.clone_with_new_inputs([copy(one) for one in node.inputs])
            order.append(new)
            copies.update(zip(node.outputs, new.outputs, strict=True))
    outputs = [copy(one) for one in fgraph.outputs]
    inputs = [copies[one] for one in fgraph.inputs]
    return Parts(FunctionGraph(inputs, outputs, clone=False), order, regions)


def _region(fgraph: FunctionGraph, nodes: list[Node]) -> NativeRegion:
    """Compile some nodes as a region."""
    since = time.perf_counter()
    own = set(nodes)
    inputs: dict[Variable, None] = {}
    for node in nodes:
        for variable in node.inputs:
            if not isinstance(variable, Constant) and variable.owner not in own:
                inputs[variable] = None
    returned = set(fgraph.outputs)
    outputs = [
        one
        for node in nodes
        for one in node.outputs
        if one in returned or any(reader not in own for reader, _ in fgraph.clients[one])
    ]
    lowered = lower_graph(
        list(inputs),
        outputs,
        nodes,
        reassociates=bool(config.numba__fastmath),
        calls_libm=calls_libm(),
    )
    compiled = compile_program(lowered.program, lowered.constants, since=since)
    return NativeRegion(compiled, list(inputs), outputs)


def _register() -> None:
    # An internal error must not break the import of PyTensor's dispatch. Without this module, the
    # dispatch ignores regions and translates whole graphs.
    with suppress(Exception):
        import_module("pytensor_fuse._native.linking.numba.dispatch")


after_import("pytensor.link.numba.dispatch", _register)
