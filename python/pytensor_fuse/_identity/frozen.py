"""Frozen graphs: immutable, hashable values that are compared by structure."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple, final, overload

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph

from pytensor_fuse import _core
from pytensor_fuse._errors import DigestError, FreezeError
from pytensor_fuse._identity.interning import apply_rows
from pytensor_fuse._identity.reasons import why_without_digest
from pytensor_fuse._identity.terms import intern_graph, intern_rows
from pytensor_fuse._reports.text import without_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    from pytensor.graph.op import Op
    from pytensor.graph.type import Type

    from pytensor_fuse._identity.interning import InternedGraph

    GraphLike: TypeAlias = (
        "FunctionGraph | FrozenFunctionGraph | FrozenGraph | "
        "tuple[Sequence[Variable[Any, Any]], Sequence[Variable[Any, Any]]]"
    )

_Row = tuple[int, list[int], list[int]]

# The most nodes that a repr shows.
_MAX_SHOWN = 12


class FrozenVariable(NamedTuple):
    """A variable of a `FrozenGraph`.

    Attributes
    ----------
    number
        Its position in the graph: inputs come first, then constants, then outputs of nodes.
    type
        The type.
    constant
        The constant, if the variable is one.
    """

    number: int
    type: Type[Any]
    constant: Constant[Any] | None = None

    def __repr__(self) -> str:
        return f"%{self.number}" if self.constant is None else str(self.constant)


class FrozenNode(NamedTuple):
    """An application of an op in a `FrozenGraph`.

    Attributes
    ----------
    op
        The op.
    inputs, outputs
        The variables that it reads and computes.
    """

    op: Op
    inputs: tuple[FrozenVariable, ...]
    outputs: tuple[FrozenVariable, ...]

    def __repr__(self) -> str:
        outputs = ", ".join(map(repr, self.outputs))
        return f"{outputs} = {self.op}({', '.join(map(repr, self.inputs))})"


@final
class FrozenGraph:
    """An immutable graph; made by `freeze`.

    Two frozen graphs are equal if and only if they compute the same by the same nodes: the same ops
    on the same inputs, of the same types, with the same constants, bit for bit. Names, tags and
    traces are not part of a graph. Inputs are identified by their positions and types. Comparison
    and hashing take constant time, whatever the size of the graph. A copy is the graph itself.

    The ops and constants are the objects of the original graph. Like PyTensor, this class assumes
    that they never change: writing into the data of a constant, or setting an attribute of an op,
    changes the results of all graphs that hold it, but not their equality.

    A frozen graph is a hash-consed term, as in J.-C. Filliatre and S. Conchon, "Type-safe modular
    hash-consing" (ML Workshop 2006).
    """

    __slots__ = ("__weakref__", "_graph", "_nodes", "_order", "_variables")

    _graph: InternedGraph
    _nodes: tuple[FrozenNode, ...] | None
    _order: list[int] | None
    _variables: tuple[FrozenVariable, ...] | None

    def __new__(cls) -> FrozenGraph:
        raise TypeError("use pytensor_fuse.freeze to make a FrozenGraph")

    @property
    def inputs(self) -> tuple[FrozenVariable, ...]:
        """The inputs."""
        return self._all_variables()[: len(self._graph.rows.parts()[0])]

    @property
    def outputs(self) -> tuple[FrozenVariable, ...]:
        """The outputs."""
        variables = self._all_variables()
        return tuple([variables[index] for index in self._graph.rows.parts()[3]])

    @property
    def digest(self) -> str:
        """The digest of the graph: 128 bits in hexadecimal.

        It is the same in every process, on every platform and with every hash seed.

        Raises
        ------
        DigestError
            If an op, type or constant has no value outside this process, such as an op that holds a
            lambda.
        """
        digest = self._graph.root.digest
        if digest is None:
            raise DigestError(f"the graph has no digest: {self._why_without_digest()}")
        return digest.hex()

    def toposort(self) -> tuple[FrozenNode, ...]:
        """Return the nodes in topological order.

        A node that overwrites a variable comes after its other readers. O(nodes + edges).
        """
        if self._nodes is None:
            rows = self._graph.rows.nodes()
            variables = self._all_variables()
            nodes: list[FrozenNode] = []
            at = self._n_leaves()
            for op, inputs, types in rows:
                nodes.append(
                    FrozenNode(
                        self._graph.ops[op],
                        tuple([variables[index] for index in inputs]),
                        variables[at : at + len(types)],
                    )
                )
                at += len(types)
            self._nodes = tuple([nodes[index] for index in self._execution_order()])
        return self._nodes

    def unfreeze(self) -> FunctionGraph:
        """Return a new FunctionGraph of new nodes and variables without names.

        If an op overwrites an input, the graph has PyTensor's `DestroyHandler` attached.
        """
        return self._unfreeze()[0]

    def bind(self, inputs: Sequence[Variable[Any, Any]]) -> list[Variable[Any, Any]]:
        """Apply the graph to ``inputs`` by new nodes, and return the outputs.

        Parameters
        ----------
        inputs : sequence of Variable
            A variable for each input, of its type or a more specific one.

        Returns
        -------
        list of Variable
            A new variable for each output of the graph, of its type.

        Raises
        ------
        FreezeError
            If there are more or fewer variables than inputs, or one has another type.
        TypeError
            If ``inputs`` is not a sequence.
        """
        if isinstance(inputs, Variable) or not hasattr(inputs, "__iter__"):
            raise TypeError(f"inputs must be a list of variables, not {inputs!r}")
        inputs = list(inputs)
        expected = [variable.type for variable in self.inputs]
        if len(inputs) != len(expected):
            raise FreezeError(f"the graph has {len(expected)} inputs, but {len(inputs)} were given")
        for position, (given, type_) in enumerate(zip(inputs, expected, strict=True)):
            if not isinstance(given, Variable):
                raise FreezeError(
                    f"input {position} must be a variable of {type_}, not a {type(given).__name__}"
                )
            if not type_.is_super(given.type):
                raise FreezeError(
                    f"input {position} must be of {type_}, but {given} is {given.type}"
                )
        return self._applied(inputs)[1]

    def __eq__(self, other: object) -> bool:
        if type(other) is not FrozenGraph:
            return NotImplemented
        return self._graph[0] == other._graph[0]

    def __hash__(self) -> int:
        return hash(self._graph[0])

    def __len__(self) -> int:
        return len(self._graph.rows)

    def __repr__(self) -> str:
        inputs = ", ".join(f"%{variable.number}: {variable.type}" for variable in self.inputs)
        outputs = ", ".join(map(repr, self.outputs))
        head = f"FrozenGraph({inputs}) -> ({outputs})"
        if len(self) > _MAX_SHOWN:
            return f"{head}, {len(self)} nodes"
        return "\n    ".join([head, *map(repr, self.toposort())])

    def __copy__(self) -> FrozenGraph:
        return self

    def __deepcopy__(self, memo: object) -> FrozenGraph:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        _, rows, ops, types, constants, _ = self._graph
        return _read, (rows.parts(), ops, types, constants)

    def _n_leaves(self) -> int:
        input_types, n_constants, _, _ = self._graph.rows.parts()
        return len(input_types) + n_constants

    def _all_variables(self) -> tuple[FrozenVariable, ...]:
        if self._variables is None:
            _, rows, _, types, constants, _ = self._graph
            input_types, _, nodes, _ = rows.parts()
            described: list[tuple[Type[Any], Constant[Any] | None]] = [
                (types[index], None) for index in input_types
            ]
            described += [(constant.type, constant) for constant in constants]
            described += [(types[index], None) for _, _, outputs in nodes for index in outputs]
            self._variables = tuple(
                [FrozenVariable(index, *of) for index, of in enumerate(described)]
            )
        return self._variables

    def _execution_order(self) -> Iterable[int]:
        if not self._graph.destroys:
            return range(len(self))
        if self._order is None:
            fgraph, nodes = self._unfreeze()
            index = {node: row for row, node in enumerate(nodes)}
            self._order = [index[node] for node in fgraph.toposort()]
        return self._order

    def _unfreeze(self) -> tuple[FunctionGraph, list[Apply[Any]]]:
        _, rows, _, types, _, destroys = self._graph
        inputs = [types[index].make_variable() for index in rows.parts()[0]]
        nodes, outputs = self._applied(inputs)
        features = [DestroyHandler()] if destroys else []
        return FunctionGraph(inputs, outputs, features=features, clone=False), nodes

    def _applied(
        self, inputs: list[Variable[Any, Any]]
    ) -> tuple[list[Apply[Any]], list[Variable[Any, Any]]]:
        _, rows, ops, types, constants, _ = self._graph
        _, _, flat, outputs = rows.parts()
        variables, nodes = apply_rows(flat, [*inputs, *constants], ops, types)
        return nodes, [variables[index] for index in outputs]

    def _why_without_digest(self) -> str:
        position: int
        part: Any
        for position, node in enumerate(self.toposort()):
            if why := why_without_digest(node.op):
                return f"{node.op}, the op of node {position}: {why}"
        for variable in self._all_variables():
            part = variable.type if variable.constant is None else variable.constant
            if why := why_without_digest(part):
                return f"{variable!r} of {variable.type}: {why}"
        return "part of it is equal only to itself"


@overload
def freeze(graph: FunctionGraph | FrozenFunctionGraph, /) -> FrozenGraph: ...
@overload
def freeze(
    inputs: Sequence[Variable[Any, Any]], outputs: Sequence[Variable[Any, Any]], /
) -> FrozenGraph: ...
def freeze(graph: Any, outputs: Any = None, /) -> FrozenGraph:
    """Freeze a graph, given as one object or by its inputs and outputs.

    Equal nodes are merged, unless an op overwrites an input. The given graph is not changed.

    Parameters
    ----------
    graph : FunctionGraph, FrozenFunctionGraph or sequence of Variable
        The graph, or its inputs.
    outputs : sequence of Variable, optional
        Its outputs, if its inputs are given.

    Returns
    -------
    FrozenGraph
        An immutable, hashable value, equal to every frozen graph that computes the same by the same
        nodes.

    Raises
    ------
    FreezeError
        If a variable is neither computed from the inputs nor a constant, if an input is given
        twice, or if the graph has a cycle.
    TypeError
        If the arguments are of another type.

    Notes
    -----
    O(nodes + edges), about a microsecond per node.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_fuse import freeze
    >>> x, y = pt.vectors("xy")
    >>> freeze([x], [pt.exp(x) + 1]) == freeze([y], [pt.exp(y) + 1])
    True
    >>> freeze([x], [pt.exp(x) + 1]).digest == freeze([x], [pt.exp(x) + 2]).digest
    False
    """
    if isinstance(graph, FunctionGraph | FrozenFunctionGraph):
        if outputs is not None:
            raise TypeError("give a FunctionGraph alone, or inputs and outputs")
        return _frozen(intern_graph(graph.inputs, graph.outputs))
    return _frozen(intern_graph(_variables(graph, "inputs"), _variables(outputs, "outputs")))


def same_graph(a: GraphLike, b: GraphLike) -> bool:
    """Return whether two graphs compute the same by the same nodes.

    Parameters
    ----------
    a, b : FunctionGraph, FrozenFunctionGraph, FrozenGraph or tuple
        Graphs; a tuple is a pair of inputs and outputs.

    Returns
    -------
    bool
        Whether `freeze` makes them equal.

    Raises
    ------
    FreezeError, TypeError
        As `freeze` does.

    Notes
    -----
    PyTensor's ``equal_computations(a_outputs, b_outputs, a_inputs, b_inputs)`` gives the same
    answer, with these differences:

    - here, constants that differ in the sign of a zero or in the bits of a NaN are different, and
      so are ops that hold such constants or values (while the package is switched on, PyTensor
      distinguishes such constants, too);
    - here, the type of each variable counts, with its whole static shape; there, the types of
      intermediate variables are not compared, and only lengths of 1 count in the others;
    - here, computing a value once differs from computing it twice, in a graph with an op that
      overwrites an input;
    - there, different numbers of outputs are an error; here, variables that are neither computed
      nor inputs nor constants are an error, and so are inputs that are given twice.
    """
    return _as_frozen(a) == _as_frozen(b)


def _as_frozen(graph: GraphLike) -> FrozenGraph:
    if isinstance(graph, FrozenGraph):
        return graph
    if isinstance(graph, tuple):
        if len(graph) != 2:
            raise TypeError(f"a graph is a pair of inputs and outputs, not {len(graph)} things")
        return freeze(*graph)
    return freeze(graph)


def _variables(given: Any, role: str) -> list[Variable[Any, Any]]:
    if isinstance(given, Variable) or not hasattr(given, "__iter__"):
        hint = "; give the graph of a function, f.maker.fgraph" if hasattr(given, "maker") else ""
        what = "nothing" if given is None else without_address(repr(given))
        raise TypeError(f"{role} must be a list of variables, not {what}{hint}")
    variables = list(given)
    for position, variable in enumerate(variables):
        if not isinstance(variable, Variable):
            raise TypeError(
                f"{role}[{position}] must be a variable, not a {type(variable).__name__}"
            )
    return variables


def _frozen(graph: InternedGraph) -> FrozenGraph:
    frozen = object.__new__(FrozenGraph)
    frozen._graph = graph._replace(constants=tuple([_unnamed(c) for c in graph.constants]))
    frozen._nodes = frozen._order = frozen._variables = None
    return frozen


def _unnamed(constant: Constant[Any]) -> Constant[Any]:
    if constant.name is None:
        return constant
    unnamed = copy.copy(constant)
    unnamed.name = None
    return unnamed


def _read(
    parts: tuple[list[int], int, list[_Row], list[int]],
    ops: tuple[Op, ...],
    types: tuple[Type[Any], ...],
    constants: tuple[Constant[Any], ...],
) -> FrozenGraph:
    """Restore a pickled graph, with terms of this process."""
    return _frozen(intern_rows(_core.FlatGraph(*parts), ops, types, constants))
