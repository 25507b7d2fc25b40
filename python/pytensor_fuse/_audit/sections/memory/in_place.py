"""Aliasing: the variables of a graph that share memory, and those that may be overwritten.

PyTensor's destroy handler decides that when a rewrite asks for it. Here the same rules are applied
to a finished graph, for all nodes at once, so that an answer has a reason.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import TensorType

from pytensor_fuse import _core
from pytensor_fuse._audit.context.sparse import is_sparse
from pytensor_fuse._audit.sections.memory.record import Missed, NotInPlace
from pytensor_fuse._pytensor.graphs.in_place_ops import in_place_form
from pytensor_fuse._pytensor.graphs.overwritable import protected_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pytensor_fuse._audit.context.graph import GraphContext

# Up to this many readers, reachability is tested for each; for more, it is computed for all nodes.
_FEW = 16


class Aliases:
    """The variables that share memory, by the views that ops declare.

    The views of one variable form a tree whose root is not a view. As in the destroy handler, the
    result of a node in place is a new root, and nothing reads the overwritten variable after the
    node.
    """

    def __init__(self, graph: GraphContext) -> None:
        self._graph = graph
        self._roots: dict[Variable[Any, Any], Variable[Any, Any]] = {}
        self._readers: dict[Variable[Any, Any], list[Apply[Any]]] = {}
        self._destroyers: dict[Variable[Any, Any], Apply[Any]] = {}
        for node in graph.order:
            for variable in dict.fromkeys(map(self.root, node.inputs)):
                self._readers.setdefault(variable, []).append(node)
            for positions in node.op.destroy_map.values():
                for position in positions:
                    self._destroyers[self.root(node.inputs[position])] = node
            for i, positions in node.op.view_map.items():
                self._roots[node.outputs[i]] = self.root(node.inputs[positions[0]])
        self._last_reads: tuple[Apply[Any], Counter[Variable[Any, Any]]] | None = None
        self._needed: dict[Variable[Any, Any], NDArray[np.bool_]] = {}
        self._returned = {self.root(v) for v in graph.fgraph.outputs}
        self._protected = {self.root(v) for v in _protected(graph.fgraph)}

    def root(self, variable: Variable[Any, Any]) -> Variable[Any, Any]:
        """Return the variable that owns the memory of a variable."""
        return self._roots.get(variable, variable)

    def dies(self, variable: Variable[Any, Any], node: Apply[Any]) -> bool:
        """Return whether nothing reads the memory of ``variable`` after ``node`` has run.

        Constants stay alive for the next call.
        """
        root = self.root(variable)
        if root in self._returned or isinstance(root, Constant):
            return False
        return self._readers[root][-1] is node

    def why_not(self, node: Apply[Any], output: int, position: int) -> NotInPlace:
        """Return the reason why ``node`` does not write an output over a fitting input."""
        variable = node.inputs[position]
        root = self.root(variable)
        taken = self._destroyers.get(root)
        if taken is not node and not has_form(node, output, position):
            return NotInPlace.NO_FORM
        if isinstance(root, Constant):
            return NotInPlace.CONSTANT
        if root in self._protected:
            if variable is not root:
                return NotInPlace.VIEW_OF_INPUT
            return NotInPlace.SHARED if isinstance(root, SharedVariable) else NotInPlace.INPUT
        if root in self._returned:
            return NotInPlace.OUTPUT
        if taken is not None:
            return NotInPlace.TAKEN
        if self._reads(node)[root] > 1:
            return NotInPlace.READ_TWICE
        if self._is_needed_by_readers(node, root):
            return NotInPlace.SEVERAL_CLIENTS
        if isinstance(node.op, Elemwise) and variable.type != node.outputs[output].type:
            return NotInPlace.OTHER_TYPE
        return NotInPlace.POSSIBLE

    def _reads(self, node: Apply[Any]) -> Counter[Variable[Any, Any]]:
        """Return for each root the number of inputs of ``node`` in its memory."""
        if self._last_reads is None or self._last_reads[0] is not node:
            self._last_reads = node, Counter(map(self.root, node.inputs))
        return self._last_reads[1]

    def _is_needed_by_readers(self, node: Apply[Any], root: Variable[Any, Any]) -> bool:
        """Return whether another reader of some memory cannot run before ``node``."""
        readers, positions = self._readers[root], self._graph.positions
        if len(readers) <= _FEW:
            place = positions[node]
            return any(positions[r] > place and self._needs(r, node) for r in readers)
        needed = self._needed.get(root)
        if needed is None:
            # Each reader is its own ancestor, so that a count above one means another reader.
            counts = np.zeros(len(positions), dtype=np.int64)
            for reader in readers:
                counts[self._ancestors_of(reader)] += 1
            needed = self._needed[root] = counts > 1
        return bool(needed[positions[node]])

    def _needs(self, later: Apply[Any], node: Apply[Any]) -> bool:
        """Return whether ``later`` cannot run before ``node``."""
        if self._ancestors is None:
            return self._graph.positions[node] in set(self._ancestors_of(later).tolist())
        ancestor, last = self._graph.positions[node], self._graph.positions[later]
        return self._ancestors.is_ancestor(ancestor, last)

    def _ancestors_of(self, node: Apply[Any]) -> NDArray[np.uint32]:
        place = self._graph.positions[node]
        if self._ancestors is not None:
            return self._ancestors.ancestors(place)
        reached, stack = {place}, [place]
        while stack:
            for n in self._graph.dependencies.predecessors(stack.pop()).tolist():
                if n not in reached:
                    reached.add(n)
                    stack.append(n)
        return np.fromiter(reached, np.uint32)

    @cached_property
    def _ancestors(self) -> _core.AncestorSets | None:
        try:
            return _core.AncestorSets(self._graph.dependencies)
        except _core.MemoryLimitError:
            return None


def missed_inputs(
    graph: GraphContext, aliases: Aliases, node: Apply[Any], output: int
) -> Iterator[Missed]:
    """Iterate over the inputs whose memory fits an allocated result, by dtype and shape."""
    first = {variable: i for i, variable in reversed(list(enumerate(node.inputs)))}
    for variable, position in sorted(first.items(), key=lambda item: item[1]):
        if fits(graph, node, output, position):
            yield Missed(
                position,
                graph.variable_name(variable),
                aliases.why_not(node, output, position),
                aliases.dies(variable, node),
            )


def fits(graph: GraphContext, node: Apply[Any], output: int, position: int) -> bool:
    """Return whether an input certainly has the dtype and shape of an output.

    An op's declaration of a form in place implies equal shapes.
    """
    variable, result = node.inputs[position], node.outputs[output]
    if not isinstance(variable.type, TensorType) or variable.type.dtype != result.type.dtype:
        return False
    if is_sparse(variable.type) or is_sparse(result.type):
        return False
    if isinstance(node.op, Elemwise):
        return bool(variable.type.broadcastable == result.type.broadcastable)
    shapes = graph.shape(variable), graph.shape(result)
    if None not in (*(shapes[0] or ()), *(shapes[1] or ())):
        return shapes[0] == shapes[1]
    return variable.type.ndim == result.type.ndim and has_form(node, output, position)


def has_form(node: Apply[Any], output: int, position: int) -> bool:
    """Return whether the op of ``node`` has a form that writes an output over an input."""
    if isinstance(node.op, Elemwise):
        return bool(node.inputs[position].type.dtype == node.outputs[output].type.dtype)
    return in_place_form(node, output, position) is not None


def _protected(fgraph: Any) -> list[Variable[Any, Any]]:
    """Return the inputs that must not be overwritten.

    A graph without a supervisor is treated as by `pytensor.function`.
    """
    found = protected_inputs(fgraph) if isinstance(fgraph, FunctionGraph) else None
    return list(fgraph.inputs) if found is None else found
