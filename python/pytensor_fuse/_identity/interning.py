"""Graphs as terms of the hash-cons table, by the terms of their ops, types and constants.

Those come from elsewhere (`Interner` is given the functions), for an op may hold a graph itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor.graph.basic import Constant, Variable
from pytensor.tensor.type import TensorType

from pytensor_fuse import _core
from pytensor_fuse._errors import FreezeError
from pytensor_fuse._identity.attributes import PLAIN_OPS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.op import Op
    from pytensor.graph.type import Type

    from pytensor_fuse._core import Term


class InternedGraph(NamedTuple):
    """A graph in the table, with the objects that its rows are about.

    Attributes
    ----------
    root
        The term that stands for the graph.
    rows
        The graph with each variable and node that is there once.
    ops, types, constants
        What the numbers in the rows mean.
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
        Gives the term of an op or a type.
    constant_term
        Gives the term of a constant, given that of its type.
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
            Of the graph.
        fold
            Whether nodes that are equal are one, unless an op overwrites an input.

        Raises
        ------
        FreezeError
            If an input is given twice, if a variable is neither computed nor an input nor a
            constant, or if a variable depends on itself.
        """
        try:
            rows, ops, types, constants, orphans = _core.walk(
                inputs, outputs, Constant, TensorType, PLAIN_OPS
            )
        except ValueError as error:
            raise FreezeError(str(error)) from error
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
        # Equal nodes hold the same value, but where one buffer is overwritten, the other may be
        # needed as it was.
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
        # Most have a type of their own, although few types are different.
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


def _refuse(inputs: Sequence[Variable[Any, Any]], orphans: Sequence[Variable[Any, Any]]) -> None:
    given = set(inputs)
    twice = list(dict.fromkeys(variable for variable in orphans if variable in given))
    if twice:
        raise FreezeError(f"given twice among the inputs: {', '.join(map(repr, twice))}")
    raise FreezeError(
        f"neither computed nor inputs nor constants: {', '.join(map(repr, orphans))}; "
        "give them as inputs"
    )
