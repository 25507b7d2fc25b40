"""Live memory: the total during each node of a run, and its peak."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.link.c.basic import CLinker
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.type import TensorType
from pytensor.tensor.type_other import NoneTypeT, SliceType

from pytensor_fuse._audit.context.sparse import is_sparse
from pytensor_fuse._audit.sections.memory.allocation import is_picked, may_copy, use_of
from pytensor_fuse._audit.sections.memory.record import Peak
from pytensor_fuse._joins.ops.split import WriteSplit
from pytensor_fuse._pytensor.ops.targets import Target

if TYPE_CHECKING:
    from pytensor_fuse._audit.context.graph import GraphContext

# The number of named results that are live at the peak.
_HOLDERS = 10

# Types whose memory is not counted.
_SMALL = (NoneTypeT, RandomType, ScalarType, SliceType)


def peak(graph: GraphContext) -> Peak:
    """Return the peak of the total memory of a graph's results; O(nodes + edges)."""
    allocations = _Allocations(graph)
    live = allocations.live()
    at = live.index(max(live)) if live else None
    held = [] if at is None else allocations.held_at(at)
    inputs = set(graph.fgraph.inputs)
    constants = {v for node in graph.order for v in node.inputs if isinstance(v, Constant)}
    return Peak(
        nbytes=0 if at is None else live[at],
        node=None if at is None else graph.name(graph.order[at]),
        holders=tuple(held[:_HOLDERS]),
        n_unknown=allocations.n_unknown,
        n_stored=allocations.n_stored,
        n_may_copy=allocations.n_may_copy,
        n_inner_graphs=sum(1 for _ in graph.walk_node_by_node()) - 1,
        order_is_exact=graph.order_is_exact,
        release_is_sure=graph.function is None or graph.target in (Target.C, Target.PYTHON),
        allow_gc=allocations.allow_gc,
        live=tuple(live),
        inputs=sum(graph.nbytes(v) or 0 for v in inputs),
        constants=sum(graph.nbytes(v) or 0 for v in constants),
    )


@dataclass
class _Allocation:
    """A memory allocation of a node, with its live range in positions of nodes."""

    name: str
    nbytes: int
    birth: int
    death: int


class _Allocations:
    """The allocations of a run, and counts of the omitted ones.

    Attributes
    ----------
    allow_gc
        Whether variables are released before the end of the run.
    n_unknown, n_stored, n_may_copy
        As in `Peak`.
    """

    def __init__(self, graph: GraphContext) -> None:
        self._graph = graph
        self.allow_gc = _allows_gc(graph)
        self.n_unknown = self.n_stored = self.n_may_copy = 0
        self._returned = set(graph.fgraph.outputs)
        self._all: list[_Allocation] = []
        # Without inputs and constants, which are allocated before the call.
        self._of: dict[Variable[Any, Any], _Allocation] = {}
        for node in graph.order:
            self._run(node)

    def live(self) -> list[int]:
        """Return the live bytes during each node."""
        changes = [0] * (len(self._graph.order) + 1)
        for allocation in self._all:
            changes[allocation.birth] += allocation.nbytes
            changes[allocation.death + 1] -= allocation.nbytes
        return list(accumulate(changes[:-1]))

    def held_at(self, place: int) -> list[tuple[str, int]]:
        """Return the names and sizes of the live results during a node, the largest first."""
        held = [(a.name, a.nbytes) for a in self._all if a.nbytes and a.birth <= place <= a.death]
        return sorted(held, key=lambda holder: -holder[1])

    def _run(self, node: Apply[Any]) -> None:
        graph, picked = self._graph, is_picked(node)
        own: _Allocation | None = None
        for output, variable in enumerate(node.outputs):
            # A scalar does not keep its array alive, and None keeps nothing: it is the output of
            # ops that write joins, in place of the results that they absorb.
            if (picked and graph.target is not Target.C) or isinstance(variable.type, _SMALL):
                continue
            use, source = use_of(node, output)
            allocation: _Allocation | None
            if source is not None:
                allocation = self._of.get(node.inputs[source])
                self.n_may_copy += not picked and may_copy(graph, node, use)
            elif isinstance(node.op, WriteSplit) and own is not None:
                # Its outputs are parts of one allocation.
                allocation = own
            else:
                allocation = own = self._allocate(node, variable)
            if allocation is not None:
                self._of[variable] = allocation
                allocation.death = max(allocation.death, self._released(node, variable))

    def _allocate(self, node: Apply[Any], variable: Variable[Any, Any]) -> _Allocation:
        graph, type_ = self._graph, variable.type
        nbytes = _allocated(graph, node, variable)
        if nbytes is None:
            self.n_unknown += 1
            self.n_stored += is_sparse(type_) or not isinstance(type_, TensorType)
        place = graph.positions[node]
        made = _Allocation(graph.variable_name(variable), nbytes or 0, place, place)
        self._all.append(made)
        return made

    def _released(self, node: Apply[Any], variable: Variable[Any, Any]) -> int:
        """Return the position of the node after which an output of ``node`` is released."""
        graph = self._graph
        clients = graph.clients.get(variable)
        kept = clients is None and _keeps_unread(graph)
        if not self.allow_gc or variable in self._returned or kept:
            return len(graph.order) - 1
        return graph.positions[node if clients is None else clients[-1][0]]


def _allocated(graph: GraphContext, node: Apply[Any], variable: Variable[Any, Any]) -> int | None:
    """Return the bytes that a node allocates for an output, if known."""
    if isinstance(node.op, WriteSplit):
        # The empty view keeps the memory of the whole result alive.
        [join] = [client for client, _ in graph.clients[node.outputs[0]]]
        return graph.nbytes(join.outputs[0])
    if not isinstance(variable.type, TensorType):
        # A list keeps its arrays alive.
        return None
    nbytes = graph.nbytes(variable)
    is_number = nbytes == np.dtype(variable.type.dtype).itemsize and not is_sparse(variable.type)
    return 0 if is_number else nbytes


def _allows_gc(graph: GraphContext) -> bool:
    """Return whether variables are released after their last reader has run."""
    if graph.target not in (Target.C, Target.PYTHON) or graph.function is None:
        return True
    if isinstance(graph.linker, CLinker):
        # One piece of C code, which releases its variables at its end or later.
        return False
    return bool(getattr(graph.function.vm, "allow_gc", True))


def _keeps_unread(graph: GraphContext) -> bool:
    """Return whether unread results are held until the end, as with all compilers but Numba."""
    return graph.target is not Target.NUMBA
