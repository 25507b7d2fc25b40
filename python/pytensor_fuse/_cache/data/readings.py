"""Recorded reads of the data of large constants while a graph is rewritten.

A graph with other data in the same places is rewritten into the same graph, with other data, if
rewriting has read the data only for these purposes:

- to compute other constants from them, by folding: the constants can be computed again;
- to evaluate a predicate with a short answer: it can be evaluated again, and compared;
- to find equal constants: the comparison can be repeated, too.

Any other reader of the data of a constant, or of a constant that was computed from it, may base any
decision on them. Then these data must be equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.tensor.variable import TensorConstant

from pytensor_fuse._cache.data.inner_constants import inner_constants
from pytensor_fuse._cache.data.questions import LONG, answer, known_readers
from pytensor_fuse._cache.data.substitution import OtherData, Step, first_equals, identity, plain
from pytensor_fuse._identity.contents import content
from pytensor_fuse._pytensor.graphs.inner_graphs import keeps_functions
from pytensor_fuse._pytensor.rewriting.constant_reads import (
    Watcher,
    forget_findings,
    remembered_findings,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import CodeType

    from pytensor.graph.basic import Variable
    from pytensor.graph.op import Op
    from pytensor.graph.type import Type

    from pytensor_fuse._cache.data.rewritten import Rewritten
    from pytensor_fuse._cache.key.places import Origins

# Smaller constants are shapes, indices and numbers, which rewriters look at.
_LARGE: Final = 9


def large_constants(origins: Origins) -> list[list[int]]:
    """Return the places of large constants, grouped by content; O(bytes)."""
    by_content: dict[Any, list[int]] = {}
    for place, constant in enumerate(origins.constants):
        if type(constant) is TensorConstant and constant.data.size >= _LARGE:
            data = constant.data
            same = content(constant)
            # Their memory layout is part of the request.
            if type(data) is np.ndarray and same is not None:
                by_content.setdefault((constant.type, same), []).append(place)
    return list(by_content.values())


class Readings(Watcher):
    """A watcher that records reads of large constants, and computations with them.

    Parameters
    ----------
    origins
        The graph, before it is rewritten.
    places
        The places of its large constants, grouped by content.
    """

    def __init__(self, origins: Origins, places: Sequence[Sequence[int]]) -> None:
        self._readers = known_readers()
        self._sources = [same[0] for same in places]
        # By numbers: the sources first, then computed constants.
        self._constants: list[Constant[Any]] = [origins.constants[same[0]] for same in places]
        # By identity, so the constants stay alive, lest another object gets the same identity. They
        # must belong to the graph alone, so that no other owner's constant counts as its data.
        self._numbers: dict[int, int] = {}
        self._alive: list[TensorConstant[Any]] = []
        self._steps: list[Step] = []
        self._exact: dict[int, str] = {}
        self._asked: dict[tuple[str, int], None] = {}
        self._identified: dict[int, TensorConstant[Any]] = {}
        for number, same in enumerate(places):
            for place in same:
                constant: Any = origins.constants[place]
                forget_findings(constant)
                self._number(constant, number)
        # Constants in inner graphs do not change with the data, and may be moved out of them.
        for op in {id(node.op): node.op for node in origins.nodes}.values():
            self.must_be_same(inner_constants([op]), f"{op} holds it")

    def _number(self, constant: TensorConstant[Any], number: int) -> None:
        self._numbers[id(constant)] = number
        self._alive.append(constant)

    @property
    def watched(self) -> list[int]:
        """The identities of the large constants of the graph."""
        return [one for one, number in self._numbers.items() if number < len(self._sources)]

    def expect_no_company(self, identities: Iterable[int]) -> None:
        """Require equal data of constants that another thread's compilation watches, too.

        Each compilation clears findings that the other may just have made.
        """
        for one in identities:
            if (number := self._numbers.get(one)) is not None:
                self._exact.setdefault(number, "another thread compiled with it")

    def read(self, constant: TensorConstant[Any], reader: CodeType) -> None:
        """Record that the code of a function reads the data of a constant."""
        if reader in self._readers.identifying:
            # Any constant may equal a large one, or one that was computed from it.
            self._identified.setdefault(id(constant), constant)
            return
        number = self._numbers.get(id(constant))
        if number is None or number in self._exact or reader in self._readers.harmless:
            return
        if reader not in self._readers.asking:
            # Rules may have been loaded since.
            self._readers = known_readers()
        names = self._readers.asking.get(reader)
        if names is None:
            self._exact.setdefault(number, reader.co_name)
        else:
            self._asked.update(((name, number), None) for name in names)

    def is_watched(self, constant: object) -> bool:
        """Whether a constant is a large one, or computed from one."""
        return id(constant) in self._numbers

    def folded(
        self, op: Op, operands: Sequence[Constant[Any]], types: Sequence[Type[Any]], made: Any
    ) -> None:
        """Record that an op has computed constants from others."""
        are_plain = all(
            type(one) is TensorConstant and type(one.data) is np.ndarray for one in made
        )
        if are_plain and not keeps_functions(op):
            self._computed("fold", op, operands, tuple(types), made)
        else:
            # Reads of other classes, and writes to the state of an op, are not observed.
            self.must_be_same(operands, f"folding of {op}")

    def converted(self, constant: TensorConstant[Any], made: TensorConstant[Any]) -> None:
        """Record that a constant was converted to another dtype."""
        self._computed("convert", made.type.dtype, [constant], (), [made])

    def combined(
        self, sign: str, operands: Sequence[TensorConstant[Any]], made: TensorConstant[Any]
    ) -> None:
        """Record that the data of constants were added or multiplied."""
        self._computed("combine", sign, operands, (), [made])

    def _computed(
        self,
        how: str,
        what: Any,
        operands: Sequence[Constant[Any]],
        types: tuple[Type[Any], ...],
        made: Sequence[TensorConstant[Any]],
    ) -> None:
        if any(id(one) in self._numbers for one in made):
            # The constant existed already.
            self.must_be_same([*operands, *made], how)
            return
        given = tuple([self._numbers.get(id(one), one) for one in operands])
        self._steps.append(Step(how, what, given, types, tuple([one.type for one in made])))
        for one in made:
            self._number(one, len(self._constants))
            self._constants.append(one)

    def must_be_same(self, constants: Iterable[object], reader: str) -> None:
        """Require that the data of constants stay equal, if they are large ones."""
        for one in constants:
            if (number := self._numbers.get(id(one))) is not None:
                self._exact.setdefault(number, reader)

    def other_data(
        self, rewritten: Rewritten, numbers: Mapping[Variable[Any, Any], int]
    ) -> OtherData | None:
        """Return the conditions on other data, after the graph has been rewritten.

        None if all data must be equal.

        Parameters
        ----------
        rewritten, numbers
            The rewritten graph, and the numbers of its variables.
        """
        for op in rewritten.ops:
            self.must_be_same(inner_constants([op]), f"{op} holds it")
        self._expect_no_others()
        identities = [identity(one) for one in self._constants]
        others = self._others(identities)
        for number, own in enumerate(identities):
            if own in others:
                self._exact.setdefault(number, "merging: it was equal to another")
        answers = []
        for name, number in self._asked:
            if number not in self._exact:
                given = answer(name, plain(self._constants[number]))
                if given is LONG:
                    self._exact[number] = name
                else:
                    answers.append((name, number, given))
        if self._exact.keys() >= set(range(len(self._sources))):
            return None
        n_inputs = len(rewritten.input_types)
        results = sorted(
            (number - n_inputs, self._numbers[id(one)])
            for one, number in numbers.items()
            if id(one) in self._numbers
        )
        return OtherData(
            tuple(self._sources),
            tuple([step.with_own_data() for step in self._steps]),
            tuple([(at, identities[at], reader) for at, reader in sorted(self._exact.items())]),
            tuple(answers),
            tuple(results),
            first_equals(identities),
            frozenset(others),
        )

    def _expect_no_others(self) -> None:
        """Assume that rewriting used findings about constants that no recorded question explains.

        Another thread may have made them for a constant that both graphs have.
        """
        for constant in self._alive:
            number = self._numbers[id(constant)]
            for question in remembered_findings(constant):
                if (question, number) not in self._asked:
                    self._exact.setdefault(number, "another thread may have examined it")

    def _others(self, identities: Iterable[Any]) -> set[Any]:
        """Return the identities of the other constants of the same types."""
        types = {(dtype, shape) for dtype, shape, _ in identities}
        return {
            identity(one)
            for one in self._identified.values()
            if id(one) not in self._numbers and (one.type.dtype, one.type.shape) in types
        }
