"""Interning of graphs as terms of the hash-cons table.

A graph's term is made of those of its ops, types and constants. An `Interner` gets the functions
for these as arguments, since an op may hold a graph itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.type import TensorType

from pytensor_fuse import _core
from pytensor_fuse._errors import FreezeError
from pytensor_fuse._identity.plain_ops import PLAIN_OPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytensor.graph.op import Op
    from pytensor.graph.type import Type

    from pytensor_fuse._core import Term


class InternedGraph(NamedTuple):
    """A graph in the table, with the objects that its rows refer to.

    Attributes
    ----------
    root
        The term of the graph.
    rows
        The graph as rows of numbers, after folding.
    ops, types, constants
        The objects that the numbers in the rows refer to.
    destroys
        Whether an op overwrites an input.
    """

    root: Term
    rows: _core.FlatGraph
    ops: tuple[Op, ...]
    types: tuple[Type[Any], ...]
    constants: tuple[Constant[Any], ...]
    destroys: bool


@dataclass(frozen=True)
class Interner:
    """Interns graphs in a table.

    Attributes
    ----------
    table
        The table.
    term
        Returns the term of an op or a type.
    constant_term
        Returns the term of a constant, given that of its type.
    """

    table: _core.HashConsTable
    term: Callable[[Op | Type[Any]], Term]
    constant_term: Callable[[Constant[Any], Term], Term]

    def intern_graph(
        self,
        inputs: Sequence[Variable[Any, Any]],
        outputs: Sequence[Variable[Any, Any]],
        *,
        fold: bool = True,
    ) -> InternedGraph:
        """Intern the graph that computes ``outputs`` from ``inputs``; O(nodes + edges).

        Parameters
        ----------
        inputs, outputs
            The inputs and outputs of the graph.
        fold
            Whether equal nodes are merged, unless an op overwrites an input.

        Raises
        ------
        FreezeError
            If an input is given twice, if a variable is neither computed nor an input nor a
            constant, or if a variable depends on itself.
        """
        try:
            walked = _core.walk(inputs, outputs, Constant, TensorType, PLAIN_OPS)
        except ValueError as error:
            raise FreezeError(str(error)) from error
        return self.intern_walked(inputs, walked, fold=fold)

    def intern_walked(
        self, inputs: Sequence[Variable[Any, Any]], walked: _core._Walked, *, fold: bool = True
    ) -> InternedGraph:
        """Intern a graph that has been walked over; see `intern_graph`."""
        rows, ops, types, constants, orphans = walked
        if orphans:
            _refuse(inputs, orphans)
        return self.intern_rows(rows, ops, types, constants, fold=fold)

    def intern_rows(
        self,
        rows: _core.FlatGraph,
        ops: Sequence[Op],
        types: Sequence[Type[Any]],
        constants: Sequence[Constant[Any]],
        *,
        fold: bool = True,
    ) -> InternedGraph:
        """Intern a graph whose variables and nodes are rows of numbers."""
        # Equal nodes compute equal values, but if the buffer of one is overwritten, that of the
        # other may still be needed.
        in_place = any(op.destroy_map for op in ops)
        root, folded = rows.intern(
            self.table,
            [self.term(op) for op in ops],
            [self.term(type_) for type_ in types],
            self._constant_terms(constants),
            fold and not in_place,
        )
        return InternedGraph(root, folded, tuple(ops), tuple(types), tuple(constants), in_place)

    def _constant_terms(self, constants: Sequence[Constant[Any]]) -> list[Term]:
        # Most constants have a type object of their own, although few of the types differ.
        plain: dict[tuple[str, tuple[int | None, ...]], Term] = {}
        terms = []
        for constant in constants:
            type_ = constant.type
            if type(type_) is TensorType:
                key = (type_.dtype, type_.shape)
                type_term = plain.get(key)
                if type_term is None:
                    type_term = plain[key] = self.term(type_)
            else:
                type_term = self.term(type_)
            terms.append(self.constant_term(constant, type_term))
        return terms


def apply_rows(
    rows: Iterable[tuple[int, Sequence[int], Sequence[int]]],
    leaves: Iterable[Variable[Any, Any]],
    ops: Sequence[Op],
    types: Sequence[Type[Any]],
) -> tuple[list[Variable[Any, Any]], list[Apply[Any]]]:
    """Return all variables and nodes of a graph that is given as rows of numbers.

    Parameters
    ----------
    rows
        For each node the numbers of its op, of the variables that it reads, and of the types of
        those that it computes.
    leaves
        The first variables: inputs and constants.
    ops, types
        The objects that the numbers refer to.
    """
    variables = list(leaves)
    nodes: list[Apply[Any]] = []
    for op, read, computed in rows:
        new = [types[index].make_variable() for index in computed]
        nodes.append(Apply(ops[op], [variables[index] for index in read], new))
        variables += new
    return variables, nodes


def walk_parts(
    inputs: Sequence[Variable[Any, Any]],
    outputs: Sequence[Variable[Any, Any]],
    harmless: tuple[str, str],
) -> tuple[_core._Walked, _core.GraphParts]:
    """Walk over a graph once, to intern it and for its parts.

    Parameters
    ----------
    inputs, outputs
        The inputs and outputs of the graph.
    harmless
        The notes in the tags of variables and of nodes that do not count.

    Returns
    -------
    tuple
        What `Interner.intern_walked` takes, and the parts.

    Raises
    ------
    FreezeError
        If a variable depends on itself.
    """
    try:
        return _core.walk_parts(inputs, outputs, Constant, TensorType, PLAIN_OPS, harmless)
    except ValueError as error:
        raise FreezeError(str(error)) from error


def _refuse(inputs: Sequence[Variable[Any, Any]], orphans: Sequence[Variable[Any, Any]]) -> None:
    given = set(inputs)
    twice = list(dict.fromkeys(variable for variable in orphans if variable in given))
    if twice:
        raise FreezeError(f"given twice among the inputs: {', '.join(map(repr, twice))}")
    raise FreezeError(
        f"neither computed nor inputs nor constants: {', '.join(map(repr, orphans))}; "
        "give them as inputs"
    )
