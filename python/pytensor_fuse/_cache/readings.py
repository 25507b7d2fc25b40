"""What is read of the data of large constants while a graph is rewritten.

A graph with other data in the same places is rewritten into the same graph, with other data, if
rewriting has read them for nothing else than these:

- to compute other constants from them, by folding: those can be computed again;
- to ask something whose answer is short: it can be asked again, and compared;
- to find out which constants are the same: that can be found out again, too.

Whoever else reads the data of a constant, or of one that was computed from it, may decide anything
by them. Then these data have to be the same, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.tensor.variable import TensorConstant

from pytensor_fuse._cache.inner_constants import inner_constants
from pytensor_fuse._cache.other_data import OtherData, Step, first_equals, identity, plain
from pytensor_fuse._cache.questions import LONG, answer, known_readers
from pytensor_fuse._identity.contents import content
from pytensor_fuse._pytensor.constant_reads import Watcher, forget_findings, remembered_findings
from pytensor_fuse._pytensor.inner_graphs import keeps_functions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import CodeType

    from pytensor.graph.basic import Variable
    from pytensor.graph.op import Op
    from pytensor.graph.type import Type

    from pytensor_fuse._cache.origins import Origins
    from pytensor_fuse._cache.rewritten import Rewritten

# Fewer elements are shapes, indices and numbers, which rewriters look at.
_LARGE: Final = 9


def large_constants(origins: Origins) -> list[list[int]]:
    """Return the places of large constants, those of the same content together; O(bytes)."""
    by_content: dict[Any, list[int]] = {}
    for place, constant in enumerate(origins.constants):
        if type(constant) is TensorConstant and constant.data.size >= _LARGE:
            data = constant.data
            same = content(constant)
            # How they lie in memory is part of the request.
            if type(data) is np.ndarray and same is not None:
                by_content.setdefault((constant.type, same), []).append(place)
    return list(by_content.values())


class Readings(Watcher):
    """What is read of large constants, and what is computed of them: a watcher.

    Parameters
    ----------
    origins
        The graph, before it is rewritten.
    places
        Those of its large constants, those of the same content together.
    """

    def __init__(self, origins: Origins, places: Sequence[Sequence[int]]) -> None:
        self._readers = known_readers()
        self._sources = [same[0] for same in places]
        # By numbers: the sources first, then what was computed.
        self._constants: list[Constant[Any]] = [origins.constants[same[0]] for same in places]
        # By identity, so nothing else may come to have it; and nobody but the graph may have these
        # constants, or it would be data that somebody takes for his own.
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
        # Those in inner graphs do not change with the data, and may come out of them.
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
        """Take constants for read that another thread's compilation watches, too.

        Each lets PyTensor forget what the other may just have found out.
        """
        for one in identities:
            if (number := self._numbers.get(one)) is not None:
                self._exact.setdefault(number, "another thread compiled with it")

    def read(self, constant: TensorConstant[Any], reader: CodeType) -> None:
        """Note that the code of a function reads the data of a constant."""
        if reader in self._readers.identifying:
            # Of any: it may turn out to be the same as a large one, or what was computed of one.
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
        """Note that constants were made by an op of others."""
        are_plain = all(
            type(one) is TensorConstant and type(one.data) is np.ndarray for one in made
        )
        if are_plain and not keeps_functions(op):
            self._computed("fold", op, operands, tuple(types), made)
        else:
            # Nobody tells who reads the data of other classes, or writes to what is in an op.
            self.must_be_same(operands, f"folding of {op}")

    def converted(self, constant: TensorConstant[Any], made: TensorConstant[Any]) -> None:
        """Note that a constant was made of another's data in another dtype."""
        self._computed("convert", made.type.dtype, [constant], (), [made])

    def combined(
        self, sign: str, operands: Sequence[TensorConstant[Any]], made: TensorConstant[Any]
    ) -> None:
        """Note that the data of constants were added or multiplied."""
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
            # One that there was already.
            self.must_be_same([*operands, *made], how)
            return
        given = tuple([self._numbers.get(id(one), one) for one in operands])
        self._steps.append(Step(how, what, given, types, tuple([one.type for one in made])))
        for one in made:
            self._number(one, len(self._constants))
            self._constants.append(one)

    def must_be_same(self, constants: Iterable[object], reader: str) -> None:
        """Note that somebody may decide by the data of constants, if they are large ones."""
        for one in constants:
            if (number := self._numbers.get(id(one))) is not None:
                self._exact.setdefault(number, reader)

    def other_data(
        self, rewritten: Rewritten, numbers: Mapping[Variable[Any, Any], int]
    ) -> OtherData | None:
        """Return what other data have to be like, now that the graph has been rewritten.

        None if all have to be the same.

        Parameters
        ----------
        rewritten, numbers
            What rewriting made, and its variables.
        """
        for op in rewritten.ops:
            self.must_be_same(inner_constants([op]), f"{op} holds it")
        self._expect_no_others()
        identities = [identity(one) for one in self._constants]
        others = self._others(identities)
        for number, own in enumerate(identities):
            if own in others:
                self._exact.setdefault(number, "merging: it was the same as another")
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
        """Take what has been found out without being asked here for known to rewriting.

        Another thread may have asked of a constant that both graphs have.
        """
        for constant in self._alive:
            number = self._numbers[id(constant)]
            for question in remembered_findings(constant):
                if (question, number) not in self._asked:
                    self._exact.setdefault(number, "somebody else found something out about it")

    def _others(self, identities: Iterable[Any]) -> set[Any]:
        """Return what constants there were of the same types that are no data."""
        types = {(dtype, shape) for dtype, shape, _ in identities}
        return {
            identity(one)
            for one in self._identified.values()
            if id(one) not in self._numbers and (one.type.dtype, one.type.shape) in types
        }
