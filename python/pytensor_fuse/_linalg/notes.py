"""Records of the rules that ran on a graph, and of the matrices that they changed.

A record follows a matrix through the replacements of other passes. It lives as long as the graph;
copies and unpickled graphs have none.
"""

from __future__ import annotations

from enum import Enum
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from pytensor.compile.builders import OpFromGraph
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.basic import AllocDiag, ExtractDiag, Eye
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pytensor_fuse._linalg.replacements import completed
from pytensor_fuse._linalg.structure.matrices import core_of
from pytensor_fuse._pytensor.graphs.features import PassingFeature, told_of
from pytensor_fuse._pytensor.graphs.provenance import line_that_made

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._pytensor.graphs.provenance import SourceLine

    Rule = Callable[[FunctionGraph, Apply[Any]], Any]

# Names of classes: importing them would load more of PyTensor.
_FACTORIZATIONS = ("Cholesky", "LUFactor", "MatrixInverse", "CholeskyInverse", "LUInverse")
_SOLVES_OF_DIAGONALS = ("SolveLUFactorTridiagonal", "SolveLUFactorBanded")
_SERVED = ("Solve", "SolveTriangular", "CholeskySolve", "Det", *_SOLVES_OF_DIAGONALS)
_KRONECKER = "KroneckerProduct"
_BLOCK_DIAGONAL = "BlockDiagonal"
# Factorizations of diagonals, which stand for the matrix.
_OF_DIAGONALS = ("LUFactorTridiagonal", "LUFactorBanded")

# The depth of the search for matrices.
_DEPTH = 8


class Applied(NamedTuple):
    """A rule that was applied to work on a matrix.

    Attributes
    ----------
    rule
        Its name.
    line
        The source line of the matrix at that time; later passes lose it.
    matrix
        The name of the matrix, or of its op.
    rows
        The number of rows; None if it is not known.
    first
        The index, among all records, of the first rule that was applied to the same matrix.
    stays
        Whether the replacement still reads the matrix: it is the other factor of a product, or a
        block.
    """

    rule: str
    line: SourceLine | None
    matrix: str
    rows: int | None
    first: int
    stays: bool


class _Worked(NamedTuple):
    """A matrix with replaced work, as in `Applied`."""

    matrix: Variable[Any, Any]
    stays: bool = False


class PackedNotes(NamedTuple):
    """The notes of a graph, with variables as numbers that are valid for an equal graph.

    Attributes
    ----------
    ran
        As in `GraphNotes`.
    applied, matrices
        The applied rules, and the variables that they concern.
    unserved, left
        The reasons why structure is not used, and the variables that they concern.
    """

    ran: dict[str, bool]
    applied: tuple[Applied, ...]
    matrices: tuple[tuple[int, tuple[int, ...]], ...]
    unserved: tuple[Enum, ...]
    left: tuple[tuple[int, tuple[int, ...]], ...]


class GraphNotes:
    """The notes of a graph.

    Attributes
    ----------
    ran
        For each rule of the mode, by name, whether it may change the graph: not if it makes ops of
        this package that the linker does not support.
    """

    def __init__(self) -> None:
        self.ran: dict[str, bool] = {}
        self._applied: list[Applied] = []
        self._matrices = _Followed()
        self._unserved: list[Enum] = []
        self._left = _Followed()

    def note(
        self,
        fgraph: FunctionGraph,
        rule: str,
        worked: list[_Worked],
        parts: list[Variable[Any, Any]],
    ) -> None:
        """Note that a rule has been applied to work on matrices.

        Parameters
        ----------
        fgraph
            The graph.
        rule
            The name of the rule.
        worked
            The matrices.
        parts
            The variables that stand for matrices that are no longer read.
        """
        fgraph.attach_feature(self._matrices)
        for matrix, stays in worked:
            number = len(self._applied)
            self._matrices.follow(matrix, [number])
            numbers = self._matrices.found(matrix)
            for part in () if stays else parts:
                self._matrices.follow(part, list(numbers))
            line, rows = line_that_made([matrix]), _rows(matrix)
            self._applied.append(Applied(rule, line, _name(matrix), rows, numbers[0], stays))

    def note_unserved(
        self, fgraph: FunctionGraph, matrix: Variable[Any, Any], reason: Enum
    ) -> None:
        """Note why the structure of a matrix is not used."""
        fgraph.attach_feature(self._left)
        self._left.follow(matrix, [len(self._unserved)])
        self._unserved.append(reason)

    def pack(self, numbers: Mapping[Variable[Any, Any], int]) -> PackedNotes:
        """Return the notes that concern numbered variables."""
        return PackedNotes(
            dict(self.ran),
            tuple(self._applied),
            self._matrices.packed(numbers),
            tuple(self._unserved),
            self._left.packed(numbers),
        )

    def unpack(
        self, fgraph: FunctionGraph, variables: Sequence[Variable[Any, Any]], packed: PackedNotes
    ) -> None:
        """Restore packed notes, given the variables of this graph by their numbers."""
        self.ran = dict(packed.ran)
        self._applied = list(packed.applied)
        self._unserved = list(packed.unserved)
        if packed.applied:
            fgraph.attach_feature(self._matrices)
            self._matrices.unpack(variables, packed.matrices)
        if packed.unserved:
            fgraph.attach_feature(self._left)
            self._left.unpack(variables, packed.left)

    @property
    def applied(self) -> dict[int, Applied]:
        """The applied rules, by index."""
        return dict(enumerate(self._applied))

    def unserved(self, variable: Variable[Any, Any]) -> tuple[Enum, ...]:
        """Return why the structure of the matrix that ``variable`` replaced is not used."""
        found = self._left.found(variable)
        return tuple(dict.fromkeys(self._unserved[number] for number in found))

    def applied_to(self, variable: Variable[Any, Any]) -> dict[int, Applied]:
        """Return the rules applied to the matrix that ``variable`` replaced, by index."""
        return {number: self._applied[number] for number in self._matrices.found(variable)}


@told_of("on_change_input")
class _Followed(PassingFeature):
    """Numbers by variable, which pass on to the replacements of the variables."""

    def __init__(self) -> None:
        # Weak references: replaced variables are freed.
        self._numbers: WeakKeyDictionary[Variable[Any, Any], list[int]] = WeakKeyDictionary()

    def follow(self, variable: Variable[Any, Any], numbers: list[int]) -> None:
        known = self._numbers.setdefault(variable, [])
        known.extend(number for number in numbers if number not in known)

    def found(self, variable: Variable[Any, Any]) -> tuple[int, ...]:
        return tuple(sorted(self._numbers.get(variable, ())))

    def packed(
        self, numbers: Mapping[Variable[Any, Any], int]
    ) -> tuple[tuple[int, tuple[int, ...]], ...]:
        of_graph = [
            (numbers[one], tuple(of)) for one, of in self._numbers.items() if one in numbers
        ]
        return tuple(sorted(of_graph))

    def unpack(
        self, variables: Sequence[Variable[Any, Any]], packed: Iterable[tuple[int, tuple[int, ...]]]
    ) -> None:
        for number, of in packed:
            self.follow(variables[number], list(of))

    def __reduce__(self) -> tuple[type[Feature], tuple[()]]:
        # The reader of a pickled graph may not have this package.
        return Feature, ()

    def on_change_input(
        self, fgraph: Any, node: Any, i: int, old: Any, new: Any, reason: object = None
    ) -> None:
        numbers = self._numbers.get(old)
        # Other nodes may still read the old variable, so it keeps its numbers.
        if numbers and new is not old:
            self.follow(new, numbers)


_notes: WeakKeyDictionary[FunctionGraph, GraphNotes] = WeakKeyDictionary()


def notes_of(fgraph: object) -> GraphNotes | None:
    """Return the notes of a graph; None if no rule has run on it."""
    return _notes.get(fgraph) if isinstance(fgraph, FunctionGraph) else None


def pack_notes(
    fgraph: FunctionGraph, numbers: Mapping[Variable[Any, Any], int]
) -> PackedNotes | None:
    """Return the notes of a graph, with numbers for variables; None if no rule has run."""
    notes = _notes.get(fgraph)
    return None if notes is None else notes.pack(numbers)


def unpack_notes(
    fgraph: FunctionGraph, variables: Sequence[Variable[Any, Any]], packed: PackedNotes
) -> None:
    """Restore the packed notes of an equal graph, given the variables by their numbers."""
    notes = _notes[fgraph] = GraphNotes()
    notes.unpack(fgraph, variables, packed)


def note_pass(fgraph: FunctionGraph, rule: str, *, may_run: bool) -> None:
    """Note that the mode has a rule, and whether it may change the graph."""
    _notes.setdefault(fgraph, GraphNotes()).ran[rule] = may_run


def note_unserved(fgraph: FunctionGraph, matrix: Variable[Any, Any], reason: Enum) -> None:
    """Note why the structure of a matrix is not used."""
    _notes.setdefault(fgraph, GraphNotes()).note_unserved(fgraph, matrix, reason)


def noting(name: str, rule: Rule) -> Rule:
    """Return a rule whose replacements are completed, and noted with the matrices they concern."""

    @wraps(rule)
    def apply(fgraph: FunctionGraph, node: Apply[Any]) -> Any:
        replacements = completed(node, rule(fgraph, node))
        if replacements:
            new = list(replacements.values())
            made = _nodes_made(fgraph, new)
            factors = [one for one in made if type(core_of(one)).__name__ in _OF_DIAGONALS]
            parts = [one.outputs[0] for one in factors]
            _notes.setdefault(fgraph, GraphNotes()).note(
                fgraph, name, list(_matrices_of(node, new, made)), parts
            )
        return replacements

    return apply


def _nodes_made(fgraph: FunctionGraph, new: list[Any]) -> list[Apply[Any]]:
    """Return the new nodes of replacements, which are not in the graph yet."""
    found: dict[Apply[Any], None] = {}
    left = [one.owner for one in new]
    while left:
        node = left.pop()
        if node is not None and node not in found and node not in fgraph.apply_nodes:
            found[node] = None
            left.extend(one.owner for one in node.inputs)
    return list(found)


def _matrices_of(node: Apply[Any], new: list[Any], made: list[Apply[Any]]) -> Iterator[_Worked]:
    """Iterate over the matrices of a node: both factors of a product, else the first input.

    For a sum, or a gradient of which a part is taken, they are the matrices whose inverses and
    factors occur in it. So they are for a diagonal matrix made of a taken diagonal; other diagonal
    matrices stand for the sums that they are added to. The operands of the new work count, too: the
    blocks of a matrix, and the matrix of which it is a multiple.
    """
    operand = node.inputs[0]
    if isinstance(core_of(node), AllocDiag) and isinstance(core_of(operand.owner), ExtractDiag):
        yield from map(_Worked, dict.fromkeys(_inside(operand.owner.inputs[0], _DEPTH)))
        return
    if isinstance(node.op, AllocDiag | Eye):
        yield from map(_Worked, new)
        return
    is_gradient = isinstance(node.op, OpFromGraph)
    if is_gradient:
        # The inputs of the gradient of an op are those of the op, its outputs and their cotangents.
        for one in node.inputs:
            if type(core_of(one.owner)).__name__ == _KRONECKER:
                yield _Worked(one)
        operand = node.inputs[-1]
    product = operand.owner
    factors = node if isinstance(core_of(node), Dot) else product
    # A factorized product is itself the matrix.
    is_work = type(core_of(node)).__name__ in (*_FACTORIZATIONS, *_SERVED)
    if not (is_gradient or is_work) and isinstance(core_of(factors), Dot):
        read = {_unmoved(one) for each in made for one in each.inputs}
        worked = []
        for one in factors.inputs:
            inner = _multiplied(one)
            matrix = _factorized(one) if inner is None else inner
            worked.append(_Worked(matrix, _unmoved(one) in read))
    else:
        is_part = is_gradient or isinstance(node.op, CAReduce | AdvancedSubtensor)
        found = list(_inside(operand, _DEPTH)) if is_part else []
        if is_gradient and not found:
            return
        worked = [_Worked(one) for one in dict.fromkeys(found or [_factorized(operand)])]
    yield from worked
    for matrix, _ in worked:
        if type(core_of(matrix.owner)).__name__ == _BLOCK_DIAGONAL:
            # The new work is on the blocks.
            yield from (_Worked(_factorized(block), stays=True) for block in matrix.owner.inputs)
    inner = _multiplied(operand)
    if inner is not None and any(inner in _inside(one, _DEPTH) for one in new):
        yield _Worked(inner, stays=True)


def _inside(variable: Variable[Any, Any], depth: int) -> Iterator[Variable[Any, Any]]:
    """Iterate over the matrices whose factors and inverses a variable is computed from."""
    node: Any = variable.owner
    if node is None or depth == 0:
        return
    if type(core_of(node)).__name__ in (*_FACTORIZATIONS, *_SERVED):
        yield _factorized(node.inputs[0])
    elif isinstance(node.op, SpecifyShape | Subtensor):
        yield from _inside(node.inputs[0], depth - 1)
    elif isinstance(node.op, DimShuffle | Elemwise) or isinstance(core_of(node), Dot):
        for one in node.inputs:
            yield from _inside(one, depth - 1)


def _name(matrix: Variable[Any, Any]) -> str:
    core = core_of(matrix.owner)
    if matrix.name is not None or core is None:
        return matrix.name or str(matrix)
    return type(getattr(core, "scalar_op", core)).__name__


def _rows(matrix: Any) -> int | None:
    return next((n for n in getattr(matrix.type, "shape", ()) if n is not None), None)


def _factorized(variable: Variable[Any, Any]) -> Variable[Any, Any]:
    """Return the matrix of a factor or an inverse, behind moved axes."""
    while variable.owner is not None:
        node = variable.owner
        is_factor = type(core_of(node)).__name__ in _FACTORIZATIONS and variable is node.outputs[0]
        if not (is_factor or isinstance(node.op, DimShuffle)):
            break
        variable = node.inputs[0]
    return variable


def _multiplied(variable: Variable[Any, Any]) -> Variable[Any, Any] | None:
    """Return the only matrix among the operands of an elementwise op; None for several."""
    node = variable.owner
    if node is None or not isinstance(node.op, Elemwise):
        return None
    matrices = [one for one in node.inputs if not all(one.type.broadcastable)]
    return _factorized(matrices[0]) if len(matrices) == 1 else None


def _unmoved(variable: Variable[Any, Any]) -> Variable[Any, Any]:
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        variable = variable.owner.inputs[0]
    return variable
