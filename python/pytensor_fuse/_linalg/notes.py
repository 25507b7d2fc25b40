"""What the rules did to a graph, noted while they run: which ran, and which matrices they changed.

A matrix is followed through what other passes put in its place. The notes are kept for as long as
the graph is there; copies of it, and what is unpickled, have none.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot

from pytensor_fuse._linalg.matrices import core_of
from pytensor_fuse._pytensor.features import PassingFeature, told_of
from pytensor_fuse._pytensor.provenance import line_that_made

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._pytensor.provenance import SourceLine

    Rule = Callable[[FunctionGraph, Apply[Any]], Any]

# By the names of their classes: asking for these must not load more of PyTensor.
_FACTORIZATIONS = ("Cholesky", "LUFactor")


class Applied(NamedTuple):
    """A rule that was applied to work on a matrix.

    Attributes
    ----------
    rule
        Its name.
    line
        What made the matrix, as it was then: later passes lose it.
    """

    rule: str
    line: SourceLine | None


class GraphNotes:
    """What is noted of a graph.

    Attributes
    ----------
    ran
        For each rule that the mode has, by name, whether it might change the graph: not if it makes
        ops of this package, and whoever compiles the graph does not know them.
    """

    def __init__(self) -> None:
        self.ran: dict[str, bool] = {}
        self._applied: list[Applied] = []
        self._matrices: _Followed | None = None

    def note(self, fgraph: FunctionGraph, rule: str, matrices: list[Variable[Any, Any]]) -> None:
        """Note that a rule has been applied to work on these matrices."""
        if self._matrices is None:
            self._matrices = _Followed()
            fgraph.attach_feature(self._matrices)
        for matrix in matrices:
            self._matrices.follow(matrix, [len(self._applied)])
            self._applied.append(Applied(rule, line_that_made([matrix])))

    def applied_to(self, variable: Variable[Any, Any]) -> dict[int, Applied]:
        """Return what was applied to what is now ``variable``, by its place among all."""
        numbers = () if self._matrices is None else self._matrices.found(variable)
        return {number: self._applied[number] for number in numbers}


@told_of("on_change_input")
class _Followed(PassingFeature):
    """Numbers by variable, which go over to the variables that are put in their place."""

    def __init__(self) -> None:
        # Weakly: what has been replaced is not kept by this.
        self._numbers: WeakKeyDictionary[Variable[Any, Any], list[int]] = WeakKeyDictionary()

    def follow(self, variable: Variable[Any, Any], numbers: list[int]) -> None:
        known = self._numbers.setdefault(variable, [])
        known.extend(number for number in numbers if number not in known)

    def found(self, variable: Variable[Any, Any]) -> tuple[int, ...]:
        return tuple(sorted(self._numbers.get(variable, ())))

    def __reduce__(self) -> tuple[type[Feature], tuple[()]]:
        # Whoever unpickles a graph may not have this package.
        return Feature, ()

    def on_change_input(
        self,
        fgraph: FunctionGraph,
        node: Apply[Any],
        i: int,
        old: Variable[Any, Any],
        new: Variable[Any, Any],
        reason: object = None,
    ) -> None:
        numbers = self._numbers.get(old)
        # The old one may stay for other nodes, so it keeps its numbers.
        if numbers and new is not old:
            self.follow(new, numbers)


_notes: WeakKeyDictionary[FunctionGraph, GraphNotes] = WeakKeyDictionary()


def notes_of(fgraph: object) -> GraphNotes | None:
    """Return what is noted of a graph; None if no rule has run over it."""
    return _notes.get(fgraph) if isinstance(fgraph, FunctionGraph) else None


def note_pass(fgraph: FunctionGraph, rule: str, *, may_run: bool) -> None:
    """Note that the mode has a rule, and whether it might change the graph."""
    _notes.setdefault(fgraph, GraphNotes()).ran[rule] = may_run


def noting(name: str, rule: Rule) -> Rule:
    """Return a rule that does the same, and notes to which matrices it was applied."""

    @wraps(rule)
    def apply(fgraph: FunctionGraph, node: Apply[Any]) -> Any:
        replacements = rule(fgraph, node)
        if replacements:
            _notes.setdefault(fgraph, GraphNotes()).note(fgraph, name, list(_matrices_of(node)))
        return replacements

    return apply


def _matrices_of(node: Apply[Any]) -> Iterator[Variable[Any, Any]]:
    """Iterate over what a node works on: both factors of a product, else its first input."""
    operand = node.inputs[0]
    product = operand.owner
    factors = node if isinstance(core_of(node), Dot) else product
    if factors is not None and isinstance(core_of(factors), Dot):
        yield from (_factorized(factor) for factor in factors.inputs)
        return
    matrix = _factorized(operand)
    yield matrix
    if type(core_of(matrix.owner)).__name__ == "BlockDiagonal":
        # The work is done on these.
        yield from (_factorized(block) for block in matrix.owner.inputs)


def _factorized(variable: Variable[Any, Any]) -> Variable[Any, Any]:
    """Return the matrix that a factor is of, seen through moved axes; else what is moved."""
    while variable.owner is not None:
        node = variable.owner
        is_factor = type(core_of(node)).__name__ in _FACTORIZATIONS and variable is node.outputs[0]
        if not (is_factor or isinstance(node.op, DimShuffle)):
            break
        variable = node.inputs[0]
    return variable
