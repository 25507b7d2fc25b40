"""Rewritten graphs, extracted from one graph and inserted into equal graphs."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pytensor.graph.basic import Apply, AtomicVariable, Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.variable import TensorConstant

from pytensor_fuse._identity.interning import apply_rows
from pytensor_fuse._identity.terms import constant_term, intern_graph, term
from pytensor_fuse._pytensor.graphs.contents import exchange_contents, has_destroy_handler
from pytensor_fuse._pytensor.graphs.inner_graphs import without_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.basic import Variable
    from pytensor.graph.op import Op
    from pytensor.graph.type import Type

    from pytensor_fuse._cache.key.places import Origins


class Made(NamedTuple):
    """The variables of a rewritten graph by their numbers, and its nodes in order."""

    variables: list[Variable[Any, Any]]
    nodes: list[Apply[Any]]


class Rewritten(NamedTuple):
    """A rewritten graph, independent of any variables.

    Variables have numbers: inputs come first, then constants, then the outputs of nodes, in the
    order of the nodes.

    Attributes
    ----------
    input_types
        The types of the inputs.
    constants
        The constants that are read.
    constant_places
        Their positions in the original graph, for those that were in it.
    ops, types
        The ops and types, which rows refer to by position.
    op_places
        The positions of the ops in the original graph, as for constants.
    nodes
        Rows, in execution order: the op, the variables that it reads, the types of
        its outputs.
    outputs
        The output variables.
    is_watched
        Whether it has PyTensor's destroy handler.
    names, traces
        The sources of the variables' names and traces, by variable: the position of a variable of
        the original graph that has the same one, or a name itself that rewriting has made.
    """

    input_types: tuple[Type[Any], ...]
    constants: tuple[Constant[Any], ...]
    constant_places: tuple[int | None, ...]
    ops: tuple[Op, ...]
    op_places: tuple[int | None, ...]
    types: tuple[Type[Any], ...]
    nodes: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]
    outputs: tuple[int, ...]
    is_watched: bool
    names: tuple[tuple[int, int | str], ...]
    traces: tuple[tuple[int, int], ...]

    @classmethod
    def of(
        cls, fgraph: FunctionGraph, origins: Origins
    ) -> tuple[Rewritten, dict[Variable[Any, Any], int]]:
        """Extract the contents of a graph, and number its variables; O(nodes + edges).

        Parameters
        ----------
        fgraph
            The graph, which has been rewritten.
        origins
            The parts of the original graph.
        """
        order = fgraph.toposort()
        constants: dict[Constant[Any], int] = {}
        for variable in (*(one for node in order for one in node.inputs), *fgraph.outputs):
            if variable.owner is None and isinstance(variable, Constant):
                constants.setdefault(variable, len(constants))
        n_inputs = len(fgraph.inputs)
        numbers: dict[Variable[Any, Any], int] = dict(
            zip(fgraph.inputs, range(n_inputs), strict=True)
        )
        numbers.update((one, n_inputs + index) for one, index in constants.items())
        # By identity: the graph keeps them alive.
        ops: dict[int, int] = {}
        types: dict[int, int] = {}
        of_ops: list[Op] = []
        of_types: list[Type[Any]] = []
        nodes = []
        names = [
            (numbers[one], origins.of_name(one.name))
            for one in constants
            if one.name is not None and origins.of_constant(one) is None
        ]
        traces: list[tuple[int, int]] = []
        for node in order:
            op = ops.setdefault(id(node.op), len(of_ops))
            if op == len(of_ops):
                of_ops.append(node.op)
            read = tuple([numbers[one] for one in node.inputs])
            computed = []
            for variable in node.outputs:
                number = numbers[variable] = len(numbers)
                type_ = types.setdefault(id(variable.type), len(of_types))
                if type_ == len(of_types):
                    of_types.append(variable.type)
                computed.append(type_)
                if variable.name is not None:
                    names.append((number, origins.of_name(variable.name)))
                if (origin := origins.of_trace(variable)) is not None:
                    traces.append((number, origin))
            nodes.append((op, read, tuple(computed)))
        made = cls(
            tuple([one.type for one in fgraph.inputs]),
            tuple([with_own_data(one) for one in constants]),
            tuple([origins.of_constant(one) for one in constants]),
            tuple([without_functions(one) for one in of_ops]),
            tuple([origins.of_op(one) for one in of_ops]),
            tuple(of_types),
            tuple(nodes),
            tuple([numbers[one] for one in fgraph.outputs]),
            has_destroy_handler(fgraph),
            tuple(names),
            tuple(traces),
        )
        return made, numbers

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return len(self.nodes)

    def put_into(self, fgraph: FunctionGraph, origins: Origins) -> list[Variable[Any, Any]]:
        """Replace the contents of a graph by new nodes on its own inputs; return the variables."""
        made = self.made_for(fgraph.inputs, origins)
        self.exchange(fgraph, made)
        return made.variables

    def exchange(self, fgraph: FunctionGraph, made: Made) -> None:
        """Replace the contents of a graph by nodes that were made for it."""
        exchange_contents(
            fgraph,
            made.nodes,
            [made.variables[number] for number in self.outputs],
            watch=self.is_watched,
        )

    def made_for(self, inputs: Sequence[Variable[Any, Any]], origins: Origins) -> Made:
        """Return new nodes on other inputs, and their variables; O(nodes + edges).

        Parameters
        ----------
        inputs
            The inputs of a graph that is equal to the one that was rewritten.
        origins
            The parts of that graph.
        """
        constants = [
            with_own_data(kept) if place is None else origins.constants[place]
            for kept, place in zip(self.constants, self.constant_places, strict=True)
        ]
        ops = [
            without_functions(kept) if place is None else origins.nodes[place].op
            for kept, place in zip(self.ops, self.op_places, strict=True)
        ]
        made = Made(*apply_rows(self.nodes, [*inputs, *constants], ops, self.types))
        variables = made.variables
        for number, name in self.names:
            variables[number].name = name if isinstance(name, str) else origins.variables[name].name
        for number, origin in self.traces:
            if (trace := origins.trace_at(origin)) is not None:
                variables[number].tag.trace = trace
        return made

    def constants_among(self, variables: Sequence[Variable[Any, Any]]) -> list[Any]:
        """Return the constants among the variables of such a graph, given in order."""
        first = len(self.input_types)
        return list(variables[first : first + len(self.constants)])

    def graph_again(self, variables: Sequence[Variable[Any, Any]]) -> Callable[[], FunctionGraph]:
        """Return a function that makes an equal graph with new nodes.

        It keeps only the constants and ops of the graph alive, and later changes of the graph do
        not affect it.

        Parameters
        ----------
        variables
            The variables of the graph, by their numbers.
        """
        constants = self.constants_among(variables)
        ops = list(self.ops)
        at = len(self.input_types) + len(constants)
        for op, _, computed in self.nodes:
            node = variables[at].owner
            if node is not None:
                ops[op] = node.op
            at += len(computed)

        def make() -> FunctionGraph:
            inputs = [type_.make_variable() for type_ in self.input_types]
            made = Made(*apply_rows(self.nodes, [*inputs, *constants], ops, self.types))
            outputs = [made.variables[number] for number in self.outputs]
            fgraph = FunctionGraph(inputs, outputs, clone=False)
            self.exchange(fgraph, made)
            return fgraph

        return make

    def digest(self, fgraph: FunctionGraph | None = None) -> bytes | None:
        """Return a digest of the graph that is the same in every process; None if there is none.

        Pickling omits gaps in the memory of data.

        Parameters
        ----------
        fgraph
            A graph that contains this one, if there is one; otherwise one is made.
        """
        made = zip(self.constants, self.constant_places, strict=True)
        if not all(_lies_without_gaps(one.data) for one, place in made if place is None):
            return None
        if fgraph is not None:
            return intern_graph(fgraph.inputs, fgraph.outputs, fold=False).root.digest
        inputs = [type_.make_variable() for type_ in self.input_types]
        variables, _ = apply_rows(self.nodes, [*inputs, *self.constants], self.ops, self.types)
        outputs = [variables[number] for number in self.outputs]
        return intern_graph(inputs, outputs, fold=False).root.digest

    def difference(self, other: Rewritten) -> str | None:
        """Describe the difference from the result of another rewriting; None if they are equal.

        Ops, types and constants are compared by value.
        """
        if len(self.nodes) != len(other.nodes):
            return f"number of nodes: {len(self.nodes)} was {len(other.nodes)}"
        if list(map(term, self.input_types)) != list(map(term, other.input_types)):
            return "the inputs have other types"
        mine, others = self._computed_by(), other._computed_by()
        for at, (node, was) in enumerate(zip(self.nodes, other.nodes, strict=True)):
            op, old = self.ops[node[0]], other.ops[was[0]]
            if term(op) != term(old):
                return f"node {at} is {op}, was {old}"
            computed = [term(self.types[each]) for each in node[2]]
            if computed != [term(other.types[each]) for each in was[2]]:
                return f"node {at}, {op}, computes other types"
            if [mine[each] for each in node[1]] != [others[each] for each in was[1]]:
                return f"node {at}, {op}, reads something else"
        if [mine[each] for each in self.outputs] != [others[each] for each in other.outputs]:
            return "the outputs are others"
        if self.is_watched != other.is_watched:
            return "a destroy handler came or went"
        return None

    def _computed_by(self) -> list[Any]:
        """Return a description of each variable that can be compared between two graphs."""
        found: list[Any] = [*range(len(self.input_types))]
        found += [(constant_term(one), _strides(one.data)) for one in self.constants]
        for at, (_, _, computed) in enumerate(self.nodes):
            found += [(at, index) for index in range(len(computed))]
        return found


def with_own_data(constant: Constant[Any]) -> Constant[Any]:
    """Return a constant whose array, or sparse matrix, and name are not shared with anything."""
    data: Any = constant.data
    if (
        type(constant) is TensorConstant
        and type(data) is np.ndarray
        and data.shape == constant.type.shape
    ):
        # The class's constructor would record the calls of this package as the constant's origin,
        # which takes longer than everything else, and has nothing to check here.
        plain = TensorConstant.__new__(TensorConstant)
        AtomicVariable.__init__(plain, constant.type, name=constant.name)
        plain.data = _copied_as_it_lies(data)
        return plain
    own = copy.copy(constant)
    if isinstance(data, np.ndarray):
        own.data = _copied_as_it_lies(data)
    elif type(data).__module__.startswith("scipy.sparse."):
        own.data = data.copy()
    return own


def _copied_as_it_lies(data: np.ndarray) -> np.ndarray:
    """Return a copy with the same strides, since BLAS sums in another order without gaps."""
    if _lies_without_gaps(data):
        return data.copy(order="K")
    steps = [(n - 1) * stride for n, stride in zip(data.shape, data.strides, strict=True)]
    before = -sum(step for step in steps if step < 0)
    n_bytes = before + sum(step for step in steps if step > 0) + data.itemsize
    made: np.ndarray = np.ndarray(
        data.shape, data.dtype, np.zeros(n_bytes, "uint8"), before, data.strides
    )
    made[...] = data
    return made


def _strides(data: object) -> tuple[int, ...] | None:
    # The stride of an axis of length 1 is arbitrary in NumPy.
    if not isinstance(data, np.ndarray):
        return None
    axes = zip(data.shape, data.strides, strict=True)
    return tuple([stride for length, stride in axes if length > 1]) if data.size else ()


def _lies_without_gaps(data: object) -> bool:
    if not isinstance(data, np.ndarray):
        return True
    return data.flags.c_contiguous or data.flags.f_contiguous or not data.size
